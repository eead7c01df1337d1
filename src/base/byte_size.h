// Sizes in bytes as people write them: "4G", "512M", "100000".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// Units K, M, G and T count in 1,024s and may be followed by B or iB. Empty on anything
// else, and above 1e18.
std::optional<int64_t> parse_byte_size(std::string_view text);

// "1.4 GiB", "17 MiB", "812 KiB".
std::string human_bytes(int64_t bytes);

}  // namespace weir
