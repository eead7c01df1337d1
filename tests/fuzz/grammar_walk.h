// What the fuzz targets of grammars share. What compiles must be walked without harm: every allowed
// token can be taken, and from every position something follows or the output may end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "grammar/matcher.h"
#include "grammar/source.h"

namespace weir::grammar {

inline const std::shared_ptr<const TokenTrie>& bytes_and_a_few() {
  static const std::shared_ptr<const TokenTrie> trie = [] {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"{\"", "\":", "\",\"", "\"}", "ab", "12", "true", "null", "\\n", "  "})
      texts.emplace_back(text);
    return std::make_shared<const TokenTrie>(
        std::vector<std::string_view>(texts.begin(), texts.end()));
  }();
  return trie;
}

inline void walk(const std::shared_ptr<const Automaton>& automaton, std::string_view choices) {
  const TokenTrie& trie = *bytes_and_a_few();
  Matcher matcher(automaton, bytes_and_a_few());
  static MatchScratch scratch;
  std::vector<uint64_t> mask(trie.mask_words());
  for (size_t i = 0; i < 30; ++i) {
    if (matcher.must_end()) return;
    matcher.fill_mask(mask, scratch);
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < trie.vocab_size(); ++token)
      if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) allowed.push_back(token);
    CHECK(!allowed.empty());
    const auto pick = static_cast<uint8_t>(choices.empty() ? i : choices[i % choices.size()]);
    CHECK(matcher.accept(allowed[(pick + 31 * i) % allowed.size()], scratch));
    matcher.forced(32, scratch);
  }
  matcher.check();
}

// Compiles, and walks what that gives; a refusal says why.
inline void compile_and_walk(GrammarSource::Kind kind, std::string_view text) {
  auto automaton = compile(GrammarSource{.kind = kind, .text = std::string(text), .choices = {}});
  if (automaton)
    walk(std::move(*automaton), text);
  else
    CHECK(!automaton.error().message.empty());
}

}  // namespace weir::grammar
