#include "base/byte_size.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace weir {

std::optional<int64_t> parse_byte_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double factor = 1;
  if (!unit.empty()) {
    switch (unit.front() | 0x20) {
      case 'k':
        factor = 1024;
        break;
      case 'm':
        factor = 1024.0 * 1024;
        break;
      case 'g':
        factor = 1024.0 * 1024 * 1024;
        break;
      case 't':
        factor = 1024.0 * 1024 * 1024 * 1024;
        break;
      default:
        return std::nullopt;
    }
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "iB" && unit != "b") return std::nullopt;
  }
  const double bytes = number * factor;
  if (bytes > 1e18) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string human_bytes(int64_t bytes) {
  char text[32];
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) {
    std::snprintf(text, sizeof text, "%.0f KiB", kib);
  } else if (kib < 1024 * 1024) {
    std::snprintf(text, sizeof text, "%.0f MiB", kib / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f GiB", kib / 1024 / 1024);
  }
  return text;
}

}  // namespace weir
