// Fetches of weights from memory while a product is computed, which calls them as it goes over its
// own words. Which of the two a processor is given, cpu_ops.cpp says.
//
// PageFetch: the next product's words are cut into kStreams stretches, and each step takes four
// lines of the next stretch: so the reads under way lie in several pages, of which the processor's
// prefetchers follow each, and several of memory's banks work at once. Two cores of a Sapphire
// Rapids VM read 16 GB/s from one stream each, and 24 GB/s so; fewer streams and more both gave
// less (bench/README.md).
//
// OrderedFetch: the product's own words kAhead bytes before they are read, then the first of the
// next product's. Where each stretch of words is read by several tiles of rows one after another,
// the fetch is a stretch ahead and spread over all of them, or the first would wait for memory and
// the others only compute. Two cores of a Zen 5 VM decode 15 to 23 % faster so than by pages
// (bench/README.md, "Tiles on AMD Zen 5").
//
// For files of avx2/, avx512/ and amx/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

inline constexpr int64_t kFetchStep = 256;  // Bytes of words.

// The words that a product reads itself, one block of columns after another.
struct OwnWords {
  const uint8_t* words = nullptr;
  int64_t bytes = 0;
  // `stretch` bytes after `stretch` bytes are read, each of them by `passes` tiles of rows in turn.
  int32_t passes = 1;
  int64_t stretch = 0;
};

// A product calls words() once for each kFetchStep of its own words in its first pass over them.
class PageFetch {
 public:
  static constexpr bool kEveryPass = false;
  static constexpr int64_t kStreams = 8;

  PageFetch() = default;
  WEIR_INLINE PageFetch(const NextWeights& next, const OwnWords& own)
      : word_(reinterpret_cast<const char*>(next.words)),
        first_(word_),
        end_(word_ + next.word_bytes),
        stretch_((next.word_bytes / kFetchStep + kStreams - 1) / kStreams * kFetchStep),
        left_(next.word_bytes / kFetchStep),
        rate_(own.bytes > 0 ? (next.word_bytes + own.bytes - 1) / own.bytes : 0),
        scale_(reinterpret_cast<const char*>(next.scales)),
        scale_end_(scale_ + next.scale_bytes) {}

  WEIR_INLINE void words() {
    for (int64_t i = rate_; i > 0 && left_ > 0; --i, --left_) {
      repeat<kFetchStep / 64>([&](auto line) WEIR_INLINE_LAMBDA {
        _mm_prefetch(word_ + 64 * line.value, _MM_HINT_T1);
      });
      word_ += stretch_;
      if (word_ >= end_) word_ = first_ += kFetchStep;
    }
  }
  // A line of scales: what a group of 16-bit scales takes.
  WEIR_INLINE void scales() {
    for (int64_t i = rate_; i > 0 && scale_ < scale_end_; --i, scale_ += 64)
      _mm_prefetch(scale_, _MM_HINT_T1);
  }

 private:
  const char* word_ = nullptr;
  const char* first_ = nullptr;  // Of the first stretch, where this round began.
  const char* end_ = nullptr;
  int64_t stretch_ = 0;
  int64_t left_ = 0;  // Steps.
  int64_t rate_ = 0;  // Steps a call: the next product may be the longer one.
  const char* scale_ = nullptr;
  const char* scale_end_ = nullptr;
};

// A product calls words() once for each kFetchStep of its own words in every pass over them.
class OrderedFetch {
 public:
  static constexpr bool kEveryPass = true;
  // 4 to 16 KiB are equal; 2 and 64 KiB gave 4 to 10 % less.
  static constexpr int64_t kAhead = 8 << 10;

  OrderedFetch() = default;
  WEIR_INLINE OrderedFetch(const NextWeights& next, const OwnWords& own)
      : passes_(own.passes),
        wait_(own.passes),
        scale_(reinterpret_cast<const char*>(next.scales)),
        scale_end_(scale_ + next.scale_bytes) {
    if (own.bytes <= 0) return;
    const int64_t ahead = own.passes > 1 && own.stretch > kAhead ? own.stretch : kAhead;
    const int64_t of_own = own.bytes > ahead ? own.bytes - ahead : 0;
    const int64_t of_next = next.word_bytes < ahead ? next.word_bytes : ahead;
    if (of_own > 0) word_ = reinterpret_cast<const char*>(own.words) + ahead;
    left_ = of_own / kFetchStep;
    next_ = reinterpret_cast<const char*>(next.words);
    next_left_ = of_next / kFetchStep;
    rate_ = (of_own + of_next + own.bytes - 1) / own.bytes;
    scale_rate_ = (next.word_bytes + own.bytes - 1) / own.bytes;
  }

  WEIR_INLINE void words() {
    if (--wait_ > 0) return;
    wait_ = passes_;
    for (int64_t i = rate_; i > 0; --i, --left_, word_ += kFetchStep) {
      if (left_ == 0) {
        if (next_left_ == 0) return;
        word_ = next_;
        left_ = next_left_;
        next_left_ = 0;
      }
      repeat<kFetchStep / 64>([&](auto line) WEIR_INLINE_LAMBDA {
        _mm_prefetch(word_ + 64 * line.value, _MM_HINT_T0);
      });
    }
  }
  // A line of scales: what a group of 16-bit scales takes.
  WEIR_INLINE void scales() {
    for (int64_t i = scale_rate_; i > 0 && scale_ < scale_end_; --i, scale_ += 64)
      _mm_prefetch(scale_, _MM_HINT_T1);
  }

 private:
  const char* word_ = nullptr;
  int64_t left_ = 0;            // Steps,
  const char* next_ = nullptr;  // and what comes after them.
  int64_t next_left_ = 0;
  int64_t rate_ = 0, scale_rate_ = 0;  // Steps a call.
  int32_t passes_ = 1, wait_ = 1;      // A call of so many fetches: how many until the next.
  const char* scale_ = nullptr;
  const char* scale_end_ = nullptr;
};

// Calls read(address) for each kFetchStep of `bytes`, having fetched them while the window before
// was read, as products do with weights; a window is about what a team's member claims
// (model/pass.h).
template <class F>
WEIR_INLINE void read_fetched(const uint8_t* at, int64_t bytes, const F& read) {
  constexpr int64_t kWindow = 64 << 10;
  for (int64_t begin = 0, end; begin < bytes; begin = end) {
    end = begin + kWindow < bytes ? begin + kWindow : bytes;
    const int64_t next = bytes - end < kWindow ? bytes - end : kWindow;
    PageFetch fetch({.words = at + end, .word_bytes = next},
                    {.words = at + begin, .bytes = end - begin});
    for (int64_t n = begin; n < end; n += kFetchStep) {
      fetch.words();
      read(at + n);
    }
  }
}

}  // namespace weir::kernels
