#include "api/prompt/content_part.h"

#include <algorithm>

#include "api/request/json_fields.h"

namespace weir::api {

const PartType* part_type(std::span<const PartType> types, std::string_view name) {
  const auto found = std::ranges::find(types, name, &PartType::name);
  return found == types.end() ? nullptr : &*found;
}

Result<std::string> part_text(std::string_view path, JsonObject part, const PartType& type) {
  const auto refused = [&](const std::string& what) {
    return unsupported(join(path, "type"), "this model does not support " + what);
  };
  switch (type.kind) {
    case PartKind::kText:
      break;
    case PartKind::kImage:
      return refused("images");
    case PartKind::kAudio:
      return refused("audio");
    case PartKind::kOther:
      return refused("parts of type " + std::string(type.name));
  }
  WEIR_ASSIGN(const std::string_view text, required_string(path, part, type.member));
  return std::string(text);
}

}  // namespace weir::api
