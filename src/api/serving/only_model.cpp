#include "api/serving/only_model.h"

#include <utility>

#include "api/serving/model_name.h"

namespace weir::api {

namespace {

// A model that is made for embeddings is listed as that alone: clients choose by it what they chat
// with.
ModelAbilities abilities_of(const ServingContext& serving) {
  ModelAbilities abilities;
  abilities.embedding = serving.config.facts.embeds && serving.config.embedding.refusal.empty();
  if (abilities.embedding) return abilities;
  abilities.audio = serving.config.front_end != nullptr || serving.config.speech;
  // A model that transcribes completes nothing.
  if (serving.config.speech) return abilities;
  abilities.completion = true;
  abilities.tools = serving.config.chat_template != nullptr && serving.outputs.calls != nullptr;
  abilities.thinking =
      serving.config.chat_template != nullptr && serving.outputs.reasoning != nullptr;
  abilities.infill = serving.infill.has_value();
  abilities.vision = serving.config.processor != nullptr;
  return abilities;
}

Error asks_no_hub() {
  return {ErrorCode::kUnsupported, "This server fetches and deletes no models."};
}

}  // namespace

ModelEntry OnlyModel::entry() const {
  return {.name = serving_.config.model_id,
          .facts = serving_.config.facts,
          .abilities = abilities_of(serving_),
          .context_max = tokens_max_(),
          .loaded = true};
}

std::vector<ModelEntry> OnlyModel::list() const { return {entry()}; }

Result<ModelDetails> OnlyModel::find(std::string_view name) const {
  WEIR_TRY(check_model(serving_.config, name));
  return ModelDetails{.entry = entry(),
                      .chat_template = serving_.config.chat_template_source,
                      .defaults = serving_.config.defaults};
}

void OnlyModel::load(const std::string& name, std::optional<double>, Done done) {
  done(check_model(serving_.config, name));
}

void OnlyModel::unload(const std::string& name, Done done) {
  if (const Result<void> known = check_model(serving_.config, name); !known) return done(known);
  done(fail(ErrorCode::kUnsupported,
            "The model '" + serving_.config.model_id +
                "' stays loaded: this server was started with it and has no other."));
}

std::function<void()> OnlyModel::pull(const std::string& name, HubDesk::Progress progress,
                                      Done done) {
  if (serving_.config.hub != nullptr)
    return serving_.config.hub->pull(name, std::move(progress), std::move(done));
  done(tl::unexpected(asks_no_hub()));
  return [] {};
}

void OnlyModel::remove(const std::string& name, Done done) {
  // Where any name will do, only its own are its own.
  const bool any = serving_.config.any_name && name != serving_.config.model_id;
  if (!any && check_model(serving_.config, name))
    return done(fail(ErrorCode::kInvalid,
                     "The model '" + name + "' is served at present: expected one that is not."));
  if (serving_.config.hub == nullptr) return done(tl::unexpected(asks_no_hub()));
  serving_.config.hub->remove(name, std::move(done));
}

}  // namespace weir::api
