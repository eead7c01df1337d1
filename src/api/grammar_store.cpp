#include "api/grammar_store.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::api {

using sample::grammar::Matcher;
using sample::grammar::TokenTrie;

GrammarStore::GrammarStore(const text::Tokenizer& tokenizer, int32_t vocab_size,
                           std::vector<int32_t> end_ids)
    : tokenizer_(tokenizer), vocab_size_(vocab_size), end_ids_(std::move(end_ids)) {}

std::shared_ptr<const TokenTrie> GrammarStore::trie() {
  std::call_once(trie_made_, [this] {
    std::vector<std::string_view> pieces;
    for (int32_t id = 0; id < std::min(vocab_size_, tokenizer_.vocab_size()); ++id) {
      const bool text =
          !tokenizer_.is_special(id) && std::ranges::find(end_ids_, id) == end_ids_.end();
      pieces.push_back(text ? tokenizer_.piece(id) : std::string_view());
    }
    trie_ = std::make_shared<const TokenTrie>(pieces);
  });
  return trie_;
}

Result<std::unique_ptr<Matcher>> GrammarStore::matcher(const sample::grammar::GrammarSource& source,
                                                       bool begins_text) {
  WEIR_ASSIGN(auto automaton, cache_.get(source));
  auto matcher = std::make_unique<Matcher>(std::move(automaton), trie());
  if (begins_text) matcher->ignore_leading_spaces(tokenizer_.leading_spaces_stripped());
  return matcher;
}

}  // namespace weir::api
