// A random output of a grammar, token by token, with the matcher's promises checked on the way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"

namespace weir::grammar {

// A random walk under the mask. Ends when it may, after some tokens as soon as it may.
inline std::string walk(Matcher& matcher, std::mt19937& random, int tokens_max, bool& ended) {
  // As threads of the server have it: one for all grammars that come along.
  static MatchScratch scratch;
  const TokenTrie& trie = matcher.trie();
  std::vector<uint64_t> mask(trie.mask_words());
  std::string text;
  ended = false;
  for (int i = 0; i < tokens_max; ++i) {
    if (matcher.may_end() && (matcher.must_end() || i > 40 || random() % 4 == 0)) {
      ended = true;
      break;
    }
    matcher.fill_mask(mask, scratch);
    std::vector<int32_t> allowed, closing;
    for (int32_t token = 0; token < trie.vocab_size(); ++token) {
      if (!(mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1)) continue;
      allowed.push_back(token);
      if (std::string_view("\"}]").find(trie.bytes(token)[0]) != std::string_view::npos)
        closing.push_back(token);
    }
    // Each token is allowed if, and only if, it can be taken; but for a mask that was cut short.
    const bool complete = scratch.work_left() > 0;
    for (int k = 0; k < 8; ++k) {
      const auto token = static_cast<int32_t>(random() % static_cast<unsigned>(trie.vocab_size()));
      Matcher copy = matcher;
      const bool taken = copy.accept(token, scratch);
      const bool is_allowed = std::ranges::binary_search(allowed, token);
      EXPECT_TRUE(taken == is_allowed || (taken && !complete))
          << text << " and " << trie.bytes(token) << (taken ? " may" : " may not") << " be taken";
    }
    EXPECT_FALSE(allowed.empty()) << "stuck behind " << text;
    if (allowed.empty()) break;
    const std::vector<int32_t>& from = i > 30 && !closing.empty() ? closing : allowed;
    const int32_t token = from[random() % from.size()];
    const std::string forced = matcher.forced(64, scratch);
    const std::string_view bytes = trie.bytes(token);
    const size_t common = std::min(forced.size(), bytes.size());
    EXPECT_EQ(forced.substr(0, common), bytes.substr(0, common));
    text += bytes;
    EXPECT_TRUE(matcher.accept(token, scratch)) << text;
  }
  matcher.check();
  return text;
}

}  // namespace weir::grammar
