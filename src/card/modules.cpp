#include "card/modules.h"

#include <utility>

#include "base/concat.h"
#include "base/json.h"
#include "card/config_reader.h"

namespace weir::card {

namespace {

// A folder within the model's.
bool is_inside(std::string_view path) {
  return !path.starts_with('/') && path.find("..") == std::string_view::npos;
}

}  // namespace

Result<Modules> read_modules(const ModelFiles& files) {
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, files.read_json(kModules));
  if (!doc) return std::nullopt;
  JsonArray list;
  if (doc->root().get(list) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig, std::string(kModules) + ": expected a list of modules, found " +
                                        json_excerpt(doc->root()));
  std::vector<Module> modules;
  for (const JsonValue entry : list) {
    const ConfigReader reader(entry, kModules, concat({"[", std::to_string(modules.size()), "]."}));
    Module module{reader.string_or("type", ""), reader.string_or("path", "")};
    module.type.erase(0, module.type.rfind('.') + 1);
    if (!is_inside(module.path))
      reader.wrong_type("path", "a path within the model's folder", *reader.value("path"));
    WEIR_TRY(reader.status());
    modules.push_back(std::move(module));
  }
  return Modules(std::move(modules));
}

}  // namespace weir::card
