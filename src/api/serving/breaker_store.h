// BreakerStore: the sequence breakers of DRY as this vocabulary's tokens; those asked for lately
// are kept, because finding them looks at every token.
//
// Threads: any, at once; finding is slow work for the pool.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sample/sequence_breakers.h"
#include "text/tokenizer.h"

namespace weir::api {

// What requests have that name none: llama.cpp's.
const std::vector<std::string>& default_breakers();

class BreakerStore {
 public:
  // The tokenizer outlives the store. Tokens from `vocab_size` on are not the model's.
  BreakerStore(const text::Tokenizer& tokenizer, int32_t vocab_size)
      : tokenizer_(tokenizer), vocab_size_(vocab_size) {}

  // Finds the tokens of `texts`; absent: of the defaults.
  std::shared_ptr<const sample::SequenceBreakers> get(
      const std::optional<std::vector<std::string>>& texts);

 private:
  using Entry =
      std::pair<std::vector<std::string>, std::shared_ptr<const sample::SequenceBreakers>>;
  // A server's clients mostly name the same ones. An entry is a bit a token, and half a MiB at
  // the most.
  static constexpr size_t kEntriesMax = 2;

  std::shared_ptr<const sample::SequenceBreakers> find(const std::vector<std::string>& texts) const;

  const text::Tokenizer& tokenizer_;
  const int32_t vocab_size_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // The newest last.
};

}  // namespace weir::api
