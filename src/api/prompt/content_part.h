// Content parts: what messages of every API are made of beside plain strings. A protocol says how
// its parts are spelled, as a table; what a part becomes in the prompt is said here alone. That is
// its text: parts of other kinds are refused.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

enum class PartKind : uint8_t { kText, kImage, kAudio, kOther };

// How a protocol spells a kind of part.
struct PartType {
  std::string_view name;  // The part's `type`.
  PartKind kind = PartKind::kText;
  std::string_view member = "text";  // Where a text stands.
};

// The row of `types` with this name; null: the protocol has no such part.
const PartType* part_type(std::span<const PartType> types, std::string_view name);

// What stands for the part in the prompt. `path` names it in errors. REQUIRES: it is of that type.
Result<std::string> part_text(std::string_view path, JsonObject part, const PartType& type);

}  // namespace weir::api
