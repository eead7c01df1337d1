#include "fit/lookup.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "card/default_model.h"
#include "fit/headers.h"
#include "hub/client.h"
#include "hub/selection.h"
#include "hub/settings.h"
#include "hub/transport.h"
#include "program/model_source.h"

namespace weir::fit {

namespace {

namespace fs = std::filesystem;

Result<Found> at_hub(const hub::Settings& settings, const hub::ModelName& name) {
  WEIR_ASSIGN(const std::unique_ptr<hub::Transport> transport, hub::curl_transport(settings));
  WEIR_ASSIGN(hub::Client client, hub::Client::create(settings, *transport));
  WEIR_ASSIGN(const hub::HubModel model, client.resolve(name));
  Found found;
  WEIR_ASSIGN(found.files, fetch_headers(client, model));
  found.id = model.name.id;
  found.commit = model.info.commit;
  found.here = false;
  found.file_bytes = hub::total_bytes(model.files);
  found.disk = existing_folder(settings.cache);
  return found;
}

}  // namespace

std::string existing_folder(const std::string& wanted) {
  fs::path path = wanted;
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path.string();
}

Result<Found> look_up(const Options& options) {
  Found found;
  if (options.model.empty()) {
    found.files = card::default_model();
    return found;
  }
  WEIR_ASSIGN(const ModelSource source, find_source(options));
  if (source.path.empty()) {
    WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
    return at_hub(settings, *source.name);
  }
  WEIR_ASSIGN(found.files, card::ModelFiles::open(source.path));
  if (source.name) found.id = source.name->id;
  found.disk = found.files.path();
  return found;
}

}  // namespace weir::fit
