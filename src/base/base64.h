// Base64 of bytes, as RFC 4648 section 4 has it.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir {

// Writes padding, and no line breaks.
void append_base64(std::string& out, std::span<const std::byte> bytes);

// The bytes, or nothing where a character is no digit. Padding may be left out.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace weir
