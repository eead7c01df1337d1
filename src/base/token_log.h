// TokenLog: the tokens of one sequence as they appear. Append-only; no lock, no allocation after
// construction.
//
// Threads: one writer (the engine) calls append() and finish(); one reader (the stream's loop)
// calls the rest. An atomic length is all they share: an entry is written before the length that
// covers it.
//
// Invariants:
// (1) size() never exceeds capacity(), which is the sequence's token limit.
// (2) After finish() nothing is appended, and the writer never touches the log again: a reader that
// sees
//     finished() may free it.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "base/prefetch.h"

namespace weir {

enum class FinishReason : uint8_t {
  kNone,       // Still running.
  kStop,       // End-of-sequence or a stop token id. Stop strings are found by the reader.
  kLength,     // max_tokens or the context.
  kCancelled,  // The reader asked for it.
  kError,      // The engine could not go on with this sequence.
};

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;  // Natural log of the raw distribution (decision 21).
};

class TokenLog {
 public:
  // `top_count`: how many alternatives each entry keeps (0..20).
  TokenLog(int32_t capacity, int32_t top_count)
      : top_count_(top_count),
        entries_(static_cast<size_t>(capacity)),
        tops_(static_cast<size_t>(capacity) * static_cast<size_t>(top_count)) {}

  // Writer.
  // REQUIRES: size() < capacity(); not finished; top.size() <= top_count().
  void append(TokenLogprob chosen, std::span<const TokenLogprob> top) {
    const int32_t n = size_.load(std::memory_order_relaxed);
    assert(n < capacity() && !finished());
    entries_[static_cast<size_t>(n)] = chosen;
    for (size_t i = 0; i < top.size() && i < static_cast<size_t>(top_count_); ++i)
      tops_[static_cast<size_t>(n) * static_cast<size_t>(top_count_) + i] = top[i];
    size_.store(n + 1, std::memory_order_release);
  }
  void finish(FinishReason reason) {
    assert(reason != FinishReason::kNone && !finished());
    reason_.store(reason, std::memory_order_release);
  }

  // Reader.
  int32_t size() const { return size_.load(std::memory_order_acquire); }
  bool finished() const { return finish_reason() != FinishReason::kNone; }
  FinishReason finish_reason() const { return reason_.load(std::memory_order_acquire); }
  // REQUIRES: index < size(), as read before.
  TokenLogprob operator[](int32_t index) const { return entries_[static_cast<size_t>(index)]; }
  // Most likely first. Entries with token -1 are unused.
  std::span<const TokenLogprob> top(int32_t index) const {
    return std::span(tops_).subspan(static_cast<size_t>(index) * static_cast<size_t>(top_count_),
                                    static_cast<size_t>(top_count_));
  }

  // A hint that operator[] will be asked for `index`; any index is allowed.
  void prefetch_entry(int32_t index) const { prefetch(entries_.data() + index); }

  int32_t capacity() const { return static_cast<int32_t>(entries_.size()); }
  int32_t top_count() const { return top_count_; }

 private:
  int32_t top_count_;
  std::vector<TokenLogprob> entries_;
  std::vector<TokenLogprob> tops_;
  std::atomic<int32_t> size_{0};
  std::atomic<FinishReason> reason_{FinishReason::kNone};
};

}  // namespace weir
