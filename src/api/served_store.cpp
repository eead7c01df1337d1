#include "api/served_store.h"

#include <utility>

#include "api/request/keep_alive.h"
#include "api/serving/only_model.h"

namespace weir::api {

namespace {

Error asks_no_hub() {
  return {ErrorCode::kUnsupported, "This server fetches and deletes no models."};
}

}  // namespace

ModelDetails ServedStore::details(size_t number) const {
  const ModelStatus status = registry_.status(number);
  ModelDetails details;
  details.entry.name = status.id;
  if (const std::shared_ptr<ServedModel>& model = served_[number]) {
    const OnlyModel loaded(model->serving, [&model] { return model->tokens_max(); });
    if (Result<ModelDetails> of = loaded.find({})) details = *std::move(of);
  }
  if (status.expires_at > 0) details.entry.expires = status.expires_at;
  return details;
}

std::vector<ModelEntry> ServedStore::list() const {
  std::vector<ModelEntry> entries;
  for (const ModelStatus& status : registry_.list())
    entries.push_back(details(status.number).entry);
  return entries;
}

Result<ModelDetails> ServedStore::find(std::string_view name) const {
  WEIR_ASSIGN(const size_t number, registry_.find(name));
  return details(number);
}

void ServedStore::load(const std::string& name, std::optional<double> keep_alive_s, Done done) {
  LoadOptions options;
  if (keep_alive_s) options.keep_alive = whole_seconds(*keep_alive_s);
  registry_.load(name, options, std::move(done));
}

void ServedStore::unload(const std::string& name, Done done) {
  const Result<size_t> number = registry_.find(name);
  if (!number) return done(tl::unexpected(number.error()));
  registry_.keep_alive(*number, 0);
  done({});
}

// What comes and goes in the cache comes and goes in the registry.
ModelStore::Done ServedStore::then_reread(Done done) {
  return [this, done = std::move(done)](const Result<void>& result) {
    if (!result) return done(result);
    registry_.reread([done](const Result<void>&) { done({}); });
  };
}

std::function<void()> ServedStore::pull(const std::string& name, HubDesk::Progress progress,
                                        Done done) {
  if (config_.hub != nullptr)
    return config_.hub->pull(name, std::move(progress), then_reread(std::move(done)));
  done(tl::unexpected(asks_no_hub()));
  return [] {};
}

void ServedStore::remove(const std::string& name, Done done) {
  if (config_.hub == nullptr) return done(tl::unexpected(asks_no_hub()));
  for (const ModelStatus& status : registry_.list()) {
    if (status.id != name && status.hub_name != name) continue;
    if (status.state != ModelState::kUnloaded)
      return done(fail(ErrorCode::kInvalid,
                       "The model '" + status.id + "' is " + std::string(name_of(status.state)) +
                           ": expected one that is not; POST /models/unload unloads it.",
                       "model", "model_in_use"));
    if (status.hub_name.empty())
      return done(fail(ErrorCode::kInvalid,
                       "The model '" + name + "' is not of the hub's cache: expected one that is.",
                       "model"));
    return config_.hub->remove(status.hub_name, then_reread(std::move(done)));
  }
  config_.hub->remove(name, then_reread(std::move(done)));
}

}  // namespace weir::api
