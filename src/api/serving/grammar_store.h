// GrammarStore: the grammars of this server's requests: the vocabulary as a trie, made when the
// first request needs it, and the automata of the grammars used lately.
//
// Threads: any, at once. Compiling and building the trie are slow: pool threads only.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "grammar/grammar_cache.h"
#include "grammar/interrupt.h"
#include "grammar/matcher.h"
#include "grammar/source.h"
#include "text/tokenizer.h"

namespace weir::api {

class GrammarStore {
 public:
  // Tokens from `vocab_size` on are not the model's; `end_ids` end an output and are no part of it.
  // `automata_bytes_max`: of what is kept of compiled grammars; tries are not counted (trie_bytes()
  // in memory/memory_cost.h). `markers`: special tokens that stand for their text, in outputs with
  // calls or reasoning. The tokenizer outlives the store.
  GrammarStore(const text::Tokenizer& tokenizer, int32_t vocab_size, std::vector<int32_t> end_ids,
               size_t automata_bytes_max, std::vector<int32_t> markers = {});

  // A position at the beginning of an output. `begins_text`: where the tokenizer drops the spaces
  // before a text, they do not count. `with_markers`: the markers' tokens may come. kCancelled if
  // `interrupt` has fired while the grammar was compiled, or waited for.
  Result<std::unique_ptr<grammar::Matcher>> matcher(const grammar::GrammarSource& source,
                                                    bool begins_text, bool with_markers = false,
                                                    grammar::Interrupt* interrupt = nullptr);

  // Memory of automata, and of what is remembered of grammars that were refused.
  size_t automata_bytes() const { return plain_.automata.bytes() + marked_.automata.bytes(); }

 private:
  // The vocabulary, made when it is needed first.
  struct Vocabulary {
    explicit Vocabulary(size_t automata_bytes_max) : automata(automata_bytes_max) {}
    std::once_flag made;
    std::shared_ptr<const grammar::TokenTrie> trie;
    grammar::GrammarCache automata;  // Their forced tokens are of this vocabulary.
  };
  Vocabulary& vocabulary(bool with_markers);

  const text::Tokenizer& tokenizer_;
  const int32_t vocab_size_;
  const std::vector<int32_t> end_ids_;
  const std::vector<int32_t> markers_;
  Vocabulary plain_, marked_;
};

}  // namespace weir::api
