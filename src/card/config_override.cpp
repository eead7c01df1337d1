#include "card/config_override.h"

#include <optional>

#include "base/json.h"
#include "card/config_reader.h"

namespace weir::card {

namespace {

// Overrides need no more; each level of the key is one of recursion.
constexpr size_t kDepthMax = 16;

struct Override {
  std::string path;  // "rope_scaling.factor".
  std::string json;
};

Result<Override> parse_override(const std::string& text) {
  const std::string name = "--config-override '" + text.substr(0, 200) + "': ";
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorCode::kConfig, name + "expected KEY=VALUE, found no '='");
  Override out{text.substr(0, equals), text.substr(equals + 1)};
  size_t depth = 0;
  for (size_t at = 0; at <= out.path.size(); ++depth) {
    const size_t end = std::min(out.path.find('.', at), out.path.size());
    if (end == at) return fail(ErrorCode::kConfig, name + "expected a name between two dots");
    at = end + 1;
  }
  if (depth > kDepthMax)
    return fail(ErrorCode::kConfig, name + "expected at most " + std::to_string(kDepthMax) +
                                        " names in a key, found " + std::to_string(depth));
  if (const auto value = JsonDoc::parse(out.json); !value)
    return fail(ErrorCode::kConfig, name +
                                        "expected JSON after the '=' (true, 4096, \"text\", null), "
                                        "found '" +
                                        out.json.substr(0, 80) + "'");
  return out;
}

// Writes `value`, or an object where there is none, with what `path` names in it replaced.
Result<void> write_with(JsonWriter& json, std::optional<JsonValue> value, std::string_view path,
                        const Override& change) {
  JsonObject object;
  const bool is_object = value && value->get(object) == simdjson::SUCCESS;
  if (value && !value->is_null() && !is_object)
    return fail(ErrorCode::kConfig, "--config-override " + change.path +
                                        ": expected an object before '" + std::string(path) +
                                        "', found " + json_excerpt(*value));
  const size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  const auto replace = [&](std::optional<JsonValue> old) -> Result<void> {
    json.key(name);
    if (dot != std::string_view::npos) return write_with(json, old, path.substr(dot + 1), change);
    json.raw(change.json);
    return {};
  };
  bool found = false;
  json.begin_object();
  if (is_object) {
    for (const auto [key, member] : object) {
      if (key != name) {
        json.field(key, member);
      } else if (!found) {
        found = true;
        WEIR_TRY(replace(member));
      }
    }
  }
  if (!found) WEIR_TRY(replace(std::nullopt));
  json.end_object();
  return {};
}

}  // namespace

Result<std::string> override_config(std::string_view config,
                                    std::span<const std::string> overrides) {
  std::string text(config);
  for (const std::string& each : overrides) {
    WEIR_ASSIGN(const Override change, parse_override(each));
    WEIR_ASSIGN(const JsonDoc doc, parse_config(text));
    std::string changed;
    JsonWriter json(changed);
    WEIR_TRY(write_with(json, doc.root(), change.path, change));
    text = std::move(changed);
  }
  return text;
}

}  // namespace weir::card
