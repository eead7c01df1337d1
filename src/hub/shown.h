// shown: a text of others (a hub's answer, a name that was given) as a part of a message: one line
// of it, without control characters, which terminals and logs obey.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::hub {

inline std::string shown(std::string_view text) {
  constexpr size_t kBytesMax = 200;  // Twice a long name.
  std::string out(text.substr(0, kBytesMax));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return out;
}

}  // namespace weir::hub
