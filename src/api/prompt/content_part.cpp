#include "api/prompt/content_part.h"

#include <algorithm>
#include <utility>

#include "api/request/json_fields.h"

namespace weir::api {

const PartType* part_type(std::span<const PartType> types, std::string_view name) {
  const auto found = std::ranges::find(types, name, &PartType::name);
  return found == types.end() ? nullptr : &*found;
}

Result<void> add_part(std::string_view path, JsonObject part, const PartType& type,
                      MessageContent& out, std::vector<MediaSource>* media) {
  const auto refused = [&](const std::string& what) {
    return unsupported(join(path, "type"), what);
  };
  switch (type.kind) {
    case PartKind::kText: {
      WEIR_ASSIGN(const std::string_view text, required_string(path, part, type.member));
      out.add_text(text);
      return {};
    }
    case PartKind::kMedium: {
      if (media == nullptr) return refused("images and audio can stand in messages only");
      WEIR_ASSIGN(MediaSource source, type.medium(std::string(path), part));
      out.add_medium(source.medium);
      media->push_back(std::move(source));
      return {};
    }
    case PartKind::kOther:
      break;
  }
  return refused("this model does not support parts of type " + std::string(type.name));
}

}  // namespace weir::api
