// SequenceBreakers: texts that no repetition reaches across, as tokens: line ends, quotes, names of
// speakers. A text may be part of a token, or begin in one token and end in those after it.
//
// Threads: immutable once sorted; shared by the requests that name the same texts.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::sample {

struct SequenceBreakers {
  // A token that ends with the beginning of a text, and which of `rests` follows.
  struct Begun {
    int32_t token = -1;
    uint32_t rest = 0;
    auto operator<=>(const Begun&) const = default;
  };
  // Where a breaker stands in a sequence: its first and its last token.
  struct Place {
    size_t first = 0, last = 0;
  };

  std::vector<uint64_t> whole;  // A bit by token: it holds a whole text.
  std::vector<Begun> begun;
  std::vector<std::vector<int32_t>> rests;  // Tokens.
  size_t rest_max = 0;                      // Of the longest one.

  // Makes it ready to be searched: rests in lexicographic order, `begun` by token and rest, each
  // once. Once all are there.
  void sort();

  bool is_whole(int32_t token) const {
    const auto word = static_cast<size_t>(token) / 64;
    return token >= 0 && word < whole.size() && (whole[word] >> (token % 64) & 1) != 0;
  }

  // How many tokens after the first of `tokens` are the longest rest of a text that the first
  // begins; 0: none is. A few binary searches, however many texts there are.
  size_t rest_length(std::span<const int32_t> tokens) const;

  // The breaker that begins last.
  std::optional<Place> find_last(std::span<const int32_t> tokens) const;

  // What find_last() says once `tokens` has one more, its last; `known` is what it said before.
  // Looks at no more than rest_max tokens.
  std::optional<Place> find_next(std::span<const int32_t> tokens, std::optional<Place> known) const;
};

}  // namespace weir::sample
