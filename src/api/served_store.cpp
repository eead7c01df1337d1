#include "api/served_store.h"

#include <utility>

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
  for (size_t i = 0; i < registry_.count(); ++i) entries.push_back(details(i).entry);
  return entries;
}

Result<ModelDetails> ServedStore::find(std::string_view name) const {
  WEIR_ASSIGN(const size_t number, registry_.find(name));
  return details(number);
}

void ServedStore::load(const std::string& name, std::optional<double> keep_alive_s, Done done) {
  LoadOptions options;
  if (keep_alive_s)
    options.keep_alive = *keep_alive_s < 0 ? -1 : static_cast<int64_t>(*keep_alive_s);
  registry_.load(name, options, std::move(done));
}

void ServedStore::unload(const std::string& name, Done done) {
  const Result<size_t> number = registry_.find(name);
  if (!number) return done(tl::unexpected(number.error()));
  registry_.keep_alive(*number, 0);
  done({});
}

std::function<void()> ServedStore::pull(const std::string& name, HubDesk::Progress progress,
                                        Done done) {
  if (config_.hub != nullptr) return config_.hub->pull(name, std::move(progress), std::move(done));
  done(tl::unexpected(asks_no_hub()));
  return [] {};
}

void ServedStore::remove(const std::string& name, Done done) {
  if (config_.hub == nullptr) return done(tl::unexpected(asks_no_hub()));
  for (const ModelStatus& status : registry_.list())
    if (status.id == name)
      return done(
          fail(ErrorCode::kInvalid,
               "The model '" + name + "' is one that this server serves: expected another."));
  config_.hub->remove(name, std::move(done));
}

}  // namespace weir::api
