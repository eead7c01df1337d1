// SequenceBreakers: texts that no repetition reaches across, as tokens: line ends, quotes, names of
// speakers. A text may be part of a token, or begin in one token and end in those after it.
//
// Threads: immutable; shared by the requests that name the same texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::sample {

struct SequenceBreakers {
  // A token that ends with the beginning of a text, and which of `rests` follows.
  struct Begun {
    int32_t token = -1;
    uint32_t rest = 0;
  };

  std::vector<uint64_t> whole;              // A bit by token: it holds a whole text.
  std::vector<Begun> begun;                 // Sorted by token.
  std::vector<std::vector<int32_t>> rests;  // Tokens; none is empty.

  bool is_whole(int32_t token) const {
    const auto word = static_cast<size_t>(token) / 64;
    return token >= 0 && word < whole.size() && (whole[word] >> (token % 64) & 1) != 0;
  }

  // How many of the last of `tokens` no breaker is part of.
  size_t free_length(std::span<const int32_t> tokens) const {
    for (size_t behind = 0; behind < tokens.size(); ++behind) {
      const size_t at = tokens.size() - 1 - behind;
      if (is_whole(tokens[at])) return behind;
      size_t longest = 0;
      for (auto it = std::ranges::lower_bound(begun, tokens[at], {}, &Begun::token);
           it != begun.end() && it->token == tokens[at]; ++it) {
        const std::vector<int32_t>& rest = rests[it->rest];
        if (rest.size() <= behind && rest.size() > longest &&
            std::ranges::equal(rest, tokens.subspan(at + 1, rest.size())))
          longest = rest.size();
      }
      if (longest > 0) return behind - longest;
    }
    return tokens.size();
  }
};

}  // namespace weir::sample
