#include "program/model_source.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/json.h"
#include "card/config_override.h"
#include "card/config_reader.h"
#include "hub/client.h"
#include "hub/transport.h"
#include "model/families.h"

namespace weir {

namespace {

// Ten times the largest config.json published.
constexpr size_t kConfigBytesMax = size_t{4} << 20;

// What is given as --model may have been meant as a path.
Error with_hint(const Options& options, Error error) {
  if (options.command != Command::kPull)
    error.message += "; nor is there a folder or file " + options.model;
  return error;
}

// An architecture that is not read is refused before its gigabytes are fetched. What a GGUF file
// holds is known when it is here.
Result<void> check_config(const Options& options, hub::Client& client, const hub::HubModel& model) {
  const auto config = std::ranges::find(model.files, "config.json", &hub::TreeFile::path);
  if (!options.include.empty() || config == model.files.end()) return {};
  WEIR_ASSIGN(std::string text, client.fetch_file(model, *config, kConfigBytesMax));
  if (!options.config_override.empty()) {
    WEIR_ASSIGN(text, card::override_config(text, options.config_override));
  }
  const auto refused = [&](const Error& error) {
    return fail(error.code, model.name.text() + ": " + error.message);
  };
  const Result<JsonDoc> doc = card::parse_config(text);
  if (!doc) return refused({doc.error().code, "config.json: " + doc.error().message});
  const Result<model::ModelSpec> spec = model::spec_from_config(doc->root());
  return spec ? Result<void>() : refused(spec.error());
}

}  // namespace

Result<hub::Settings> hub_settings(const Options& options) {
  WEIR_ASSIGN(hub::Settings settings, hub::Settings::from_environment());
  settings.offline = settings.offline || options.offline;
  return settings;
}

Result<ModelSource> find_source(const Options& options) {
  ModelSource source{.name = {}, .path = options.model};
  std::error_code error;
  if (std::filesystem::exists(options.model, error) || !hub::ModelName::looks_like(options.model))
    return source;
  WEIR_ASSIGN(source.name, hub::ModelName::parse(options.model));
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  const std::optional<hub::Snapshot> snapshot = hub::Cache(settings.cache).find(*source.name);
  source.path = snapshot ? snapshot->model_path : "";
  return source;
}

Result<hub::Snapshot> pull_model(const Options& options, const hub::ModelName& name,
                                 const PullWatch& watch) {
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  WEIR_ASSIGN(const std::unique_ptr<hub::Transport> transport, hub::curl_transport(settings));
  WEIR_ASSIGN(hub::Client client, hub::Client::create(settings, *transport));
  if (watch.on_wait) client.on_wait(watch.on_wait);
  if (watch.stop) client.stop_when(watch.stop);
  const hub::Cache cache(settings.cache);
  Result<hub::HubModel> resolved = client.resolve(name, options.include);
  if (!resolved) return tl::unexpected(with_hint(options, resolved.error()));
  const hub::HubModel& model = *resolved;
  const int64_t missing = hub::missing_bytes(cache, model);
  if (missing > 0) WEIR_TRY(check_config(options, client, model));
  if (watch.on_begin) watch.on_begin(model, missing);
  if (options.dry_run) return hub::Snapshot{.id = model.name.id, .commit = model.tree.commit};
  hub::DownloadOptions download;
  download.disk_reserve = options.disk_reserve;
  download.on_progress = watch.on_progress;
  return hub::download(client, cache, model, download);
}

}  // namespace weir
