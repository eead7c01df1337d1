// GPT-2's alphabet: one printable character for each byte, so that byte strings are text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::text {

// Appends the characters of `bytes`.
void append_byte_level(std::string& out, std::string_view bytes);

// Appends the bytes that `characters` stand for; false (and nothing appended) if one of them is not
// in the alphabet. REQUIRES: valid UTF-8.
bool append_from_byte_level(std::string& out, std::string_view characters);

}  // namespace weir::text
