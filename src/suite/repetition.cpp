#include "suite/repetition.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace weir::suite {

FrequentWord most_frequent_word(std::string_view text, int32_t words_min) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::map<std::string_view, int32_t> counts;
  int32_t words = 0;
  for (size_t begin = 0;
       (begin = text.find_first_not_of(kSpace, begin)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    ++counts[text.substr(begin, end - begin)];
    ++words;
    begin = end;
  }
  if (words < words_min) return {};
  FrequentWord most;
  int32_t times = 0;
  for (const auto& [word, count] : counts) {
    if (count <= times) continue;
    times = count;
    most.word = word;
  }
  most.share = words > 0 ? static_cast<double>(times) / words : 0;
  return most;
}

}  // namespace weir::suite
