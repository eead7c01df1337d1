// NextFetch: fetches weights from memory while a product is computed, which calls it as it goes
// over its own words.
//
// kInOrder: the product's own words kAhead bytes before they are read, then the first of the next
// product's. Where each stretch of words is read by several tiles of rows one
// after another, the fetch is a stretch ahead and spread over all of them, or the first would wait
// for memory and the others only compute. Two cores of a Zen 5 VM decode 15 to 23 % faster so than
// out of order (bench/README.md, "Tiles on AMD Zen 5").
//
// kByPages: the next product's words are cut into kStreams stretches, and each step takes four
// lines of the next stretch: so the reads under way lie in several pages, of which the processor's
// prefetchers follow each, and several of memory's banks work at once. Two cores of a Sapphire
// Rapids VM read 16 GB/s from one stream each, and 24 GB/s so; fewer streams and more both gave
// less (bench/README.md).
//
// For files of avx2/ and avx512/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

enum class FetchOrder : uint8_t { kByPages, kInOrder };

// The words that a product reads itself, one block of columns after another.
struct OwnWords {
  const uint8_t* words = nullptr;
  int64_t bytes = 0;
  // `stretch` bytes after `stretch` bytes are read, each of them by `passes` tiles of rows in turn.
  int32_t passes = 1;
  int64_t stretch = 0;
};

class NextFetch {
 public:
  static constexpr int64_t kStreams = 8;
  static constexpr int64_t kStep = 256;  // Bytes of words.
  // In order. 4 to 16 KiB are equal; 2 and 64 KiB gave 4 to 10 % less.
  static constexpr int64_t kAhead = 8 << 10;

  NextFetch() = default;
  // For a product that calls words() once for each kStep of its own words: in order in every pass
  // over them, by pages in the first one only.
  WEIR_INLINE NextFetch(FetchOrder order, const NextWeights& next, const OwnWords& own)
      : in_order_(order == FetchOrder::kInOrder),
        scale_(reinterpret_cast<const char*>(next.scales)),
        scale_end_(scale_ + next.scale_bytes) {
    const auto* words = reinterpret_cast<const char*>(next.words);
    int64_t bytes = next.word_bytes;
    scale_rate_ = own.bytes > 0 ? (bytes + own.bytes - 1) / own.bytes : 0;
    if (in_order_) {
      passes_ = wait_ = own.passes;
      const int64_t ahead = own.passes > 1 && own.stretch > kAhead ? own.stretch : kAhead;
      const int64_t of_next = bytes < ahead ? bytes : ahead;
      const int64_t of_own = own.bytes > ahead ? own.bytes - ahead : 0;
      if (of_own > 0)
        begin(reinterpret_cast<const char*>(own.words) + ahead, of_own / kStep, kStep);
      later_ = words;
      later_steps_ = of_next / kStep;
      bytes = of_own + of_next;
    } else {
      begin(words, bytes / kStep, (bytes / kStep + kStreams - 1) / kStreams * kStep);
    }
    rate_ = own.bytes > 0 ? (bytes + own.bytes - 1) / own.bytes : 0;
  }

  WEIR_INLINE void words() {
    if (--wait_ > 0) return;
    wait_ = passes_;
    for (int64_t i = rate_; i > 0; --i) {
      if (left_ == 0) {
        if (later_steps_ == 0) return;
        begin(later_, later_steps_, kStep);
        later_steps_ = 0;
      }
      fetch_step();
      --left_;
      word_ += stretch_;
      if (word_ >= end_) word_ = first_ += kStep;
    }
  }
  // A line of scales: what a group of 16-bit scales takes.
  WEIR_INLINE void scales() {
    for (int64_t i = scale_rate_; i > 0 && scale_ < scale_end_; --i, scale_ += 64)
      _mm_prefetch(scale_, _MM_HINT_T1);
  }

 private:
  WEIR_INLINE void begin(const char* words, int64_t steps, int64_t stretch) {
    word_ = first_ = words;
    end_ = words + steps * kStep;
    stretch_ = stretch;
    left_ = steps;
  }
  WEIR_INLINE void fetch_step() const {
    if (in_order_)
      repeat<kStep / 64>([&](auto line) WEIR_INLINE_LAMBDA {
        _mm_prefetch(word_ + 64 * line.value, _MM_HINT_T0);
      });
    else
      repeat<kStep / 64>([&](auto line) WEIR_INLINE_LAMBDA {
        _mm_prefetch(word_ + 64 * line.value, _MM_HINT_T1);
      });
  }

  const char* word_ = nullptr;
  const char* first_ = nullptr;  // Of the first stretch, where this round began.
  const char* end_ = nullptr;
  int64_t stretch_ = 0;
  int64_t left_ = 0;             // Steps.
  const char* later_ = nullptr;  // What comes after those.
  int64_t later_steps_ = 0;
  int64_t rate_ = 0;               // Steps a call: the next product may be the longer one.
  int32_t passes_ = 1, wait_ = 1;  // Every so many calls, and how many are left until one fetches.
  bool in_order_ = false;
  const char* scale_ = nullptr;
  const char* scale_end_ = nullptr;
  int64_t scale_rate_ = 0;
};

// Calls read(address) for each kStep of `bytes`, having fetched them while the window before was
// read, as products do with weights; a window is about what a team's member claims (model/pass.h).
template <class F>
WEIR_INLINE void read_fetched(const uint8_t* at, int64_t bytes, const F& read) {
  constexpr int64_t kWindow = 64 << 10;
  for (int64_t begin = 0, end; begin < bytes; begin = end) {
    end = begin + kWindow < bytes ? begin + kWindow : bytes;
    const int64_t next = bytes - end < kWindow ? bytes - end : kWindow;
    NextFetch fetch(FetchOrder::kByPages, {.words = at + end, .word_bytes = next},
                    {.words = at + begin, .bytes = end - begin});
    for (int64_t n = begin; n < end; n += NextFetch::kStep) {
      fetch.words();
      read(at + n);
    }
  }
}

}  // namespace weir::kernels
