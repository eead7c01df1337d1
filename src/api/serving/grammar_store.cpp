#include "api/serving/grammar_store.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "grammar/forced_tokens.h"

namespace weir::api {

using grammar::add_forced_tokens;
using grammar::Automaton;
using grammar::Matcher;
using grammar::TokenTrie;

GrammarStore::GrammarStore(const text::Tokenizer& tokenizer, int32_t vocab_size,
                           std::vector<int32_t> end_ids, size_t automata_bytes_max,
                           std::vector<int32_t> markers)
    : tokenizer_(tokenizer),
      vocab_size_(vocab_size),
      end_ids_(std::move(end_ids)),
      markers_(std::move(markers)),
      plain_(markers_.empty() ? automata_bytes_max : automata_bytes_max / 2),
      marked_(markers_.empty() ? 0 : automata_bytes_max / 2) {}

GrammarStore::Vocabulary& GrammarStore::vocabulary(bool with_markers) {
  Vocabulary& vocabulary = with_markers ? marked_ : plain_;
  std::call_once(vocabulary.made, [&] {
    const auto has = [](const std::vector<int32_t>& ids, int32_t id) {
      return std::ranges::find(ids, id) != ids.end();
    };
    std::vector<std::string_view> pieces;
    for (int32_t id = 0; id < std::min(vocab_size_, tokenizer_.vocab_size()); ++id) {
      const bool text = !tokenizer_.is_special(id) || (with_markers && has(markers_, id));
      pieces.push_back(text && !has(end_ids_, id) ? tokenizer_.piece(id) : std::string_view());
    }
    vocabulary.trie = std::make_shared<const TokenTrie>(pieces);
  });
  return vocabulary;
}

Result<std::unique_ptr<Matcher>> GrammarStore::matcher(const grammar::GrammarSource& source,
                                                       bool begins_text, bool with_markers,
                                                       grammar::Interrupt* interrupt) {
  with_markers = with_markers && !markers_.empty();
  Vocabulary& words = vocabulary(with_markers);
  const auto tokenise = [&](std::string_view text) {
    return tokenizer_.encode(text, {.add_special = false, .parse_special = with_markers});
  };
  const auto finish = [&](Automaton& compiled, grammar::Interrupt* stop) {
    add_forced_tokens(compiled, *words.trie, tokenise, stop);
  };
  WEIR_ASSIGN(auto automaton, words.automata.get(source, finish, interrupt));
  auto matcher = std::make_unique<Matcher>(std::move(automaton), words.trie);
  if (begins_text) matcher->ignore_leading_spaces(tokenizer_.leading_spaces_stripped());
  return matcher;
}

}  // namespace weir::api
