// Finds the first of some markers in a text that is still arriving.
//
// Threads: a pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::api::output {

struct Found {
  size_t at = 0;              // Where the marker, or what may become one, begins; or the end.
  std::string_view marker{};  // Empty: not whole, or none.
};

// The first of the markers, or the beginning of one at the text's end. None of them begins with
// another one.
template <class Markers>
Found find_marker(std::string_view text, const Markers& markers) {
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    bool partial = false;
    for (const std::string_view marker : markers) {
      if (rest.front() != marker.front()) continue;
      if (rest.starts_with(marker)) return {at, marker};
      partial = partial || marker.starts_with(rest);
    }
    if (partial) return {at, {}};
  }
  return {text.size(), {}};
}

}  // namespace weir::api::output
