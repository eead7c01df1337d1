// 128-bit XXH3 of bytes: names for what is too long to compare. Not for secrets.
//
// Threads: a free function.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::kv {

std::array<uint64_t, 2> hash128(std::string_view bytes);  // Low, high.

}  // namespace weir::kv
