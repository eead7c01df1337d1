// Content parts: what messages of every API are made of beside plain strings. A protocol says how
// its parts are spelled, as a table; what a part becomes in the prompt is said here alone: a text is
// text, a picture or a sound is noted with where it comes from, and parts of other kinds are refused.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/request/message_content.h"
#include "api/request/media_source.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

enum class PartKind : uint8_t { kText, kMedium, kOther };

// How a protocol spells a kind of part.
struct PartType {
  std::string_view name;  // The part's `type`.
  PartKind kind = PartKind::kText;
  std::string_view member = "text";  // Where a text stands.
  // Where a medium comes from. `path` names the part in errors.
  Result<MediaSource> (*medium)(const std::string& path, JsonObject part) = nullptr;
};

// The row of `types` with this name; null: the protocol has no such part.
const PartType* part_type(std::span<const PartType> types, std::string_view name);

// Adds the part to a message's content. `path` names it in errors. `media`: the request's; null:
// there can be none where the part stands. REQUIRES: it is of that type.
Result<void> add_part(std::string_view path, JsonObject part, const PartType& type,
                      MessageContent& out, std::vector<MediaSource>* media);

}  // namespace weir::api
