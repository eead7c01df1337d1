#include "grammar/forced_tokens.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace weir::grammar {

namespace {

// Longer texts are forced in parts.
constexpr size_t kTextBytesMax = 96;
// Most states looked at: each takes some 30 us.
constexpr size_t kStatesMax = 1024;
// What may follow: one of each kind that tokenizers merge or split by, and what JSON has.
constexpr std::string_view kFollowers[] = {"a", "A", "0", " ",   "\n",     "\"",     ",",
                                           ":", "}", "]", " \"", "\", \"", "\": \"", "\xc3\xa9"};

bool continues_character(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// The text that must be read from `state` on.
std::string text_from(const Automaton& automaton, uint32_t state) {
  std::string text;
  while (text.size() < kTextBytesMax) {
    const Automaton::State& at = automaton.state(state);
    if (!at.plain() || at.range_count != 1) break;
    const Automaton::Range& range = automaton.ranges(at).front();
    if (range.first != range.last) break;
    text += static_cast<char>(range.first);
    state = range.to;
  }
  return text;
}

// Cuts what may be the beginning of a character.
void drop_last_character(std::string& text) {
  while (!text.empty() && continues_character(text.back())) text.pop_back();
  if (!text.empty()) text.pop_back();
}

// How many leading tokens spell their part of the text, no more and no less.
size_t spelled(std::span<const int32_t> tokens, const TokenTrie& trie, std::string_view text) {
  size_t count = 0;
  for (const int32_t token : tokens) {
    const std::string_view bytes = trie.bytes(token);
    if (bytes.empty() || !text.starts_with(bytes)) break;
    text.remove_prefix(bytes.size());
    ++count;
  }
  return count;
}

std::vector<int32_t> certain_tokens(std::string text, const TokenTrie& trie,
                                    const Tokenise& tokenise) {
  if (text.size() < 2 || continues_character(text.front())) return {};
  if (static_cast<uint8_t>(text.back()) >= 0x80) drop_last_character(text);
  std::vector<int32_t> tokens = tokenise(text);
  tokens.resize(spelled(tokens, trie, text));
  for (const std::string_view follower : kFollowers) {
    if (tokens.size() < 2) return {};
    const std::vector<int32_t> longer = tokenise(text + std::string(follower));
    tokens.erase(std::ranges::mismatch(tokens, longer).in1, tokens.end());
  }
  if (tokens.size() < 2) return {};
  return tokens;
}

}  // namespace

void add_forced_tokens(Automaton& automaton, const TokenTrie& trie, const Tokenise& tokenise,
                       Interrupt* interrupt) {
  std::vector<uint32_t> begins;
  begins.reserve(automaton.state_count() + 1);
  std::vector<int32_t> all;
  size_t looked_at = 0;
  for (uint32_t state = 0; state < automaton.state_count(); ++state) {
    if (interrupt && interrupt->fired()) return;
    begins.push_back(static_cast<uint32_t>(all.size()));
    std::string text = text_from(automaton, state);
    if (text.size() < 2 || looked_at == kStatesMax) continue;
    ++looked_at;
    const std::vector<int32_t> tokens = certain_tokens(std::move(text), trie, tokenise);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  begins.push_back(static_cast<uint32_t>(all.size()));
  if (!all.empty()) automaton.set_forced(std::move(begins), std::move(all));
}

}  // namespace weir::grammar
