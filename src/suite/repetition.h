// The most frequent word of a text: what shows that a model repeats itself.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::suite {

struct FrequentWord {
  std::string word;
  double share = 0;  // Of all words, 0 to 1.
};

// Words are runs of what is no white space. Of fewer than `words_min` nothing is said: share 0.
FrequentWord most_frequent_word(std::string_view text, int32_t words_min);

}  // namespace weir::suite
