// NextFetch: walks over a product's NextWeights (ops.h) while the product is computed.
//
// The words are cut into kStreams stretches, and each step takes four lines of the next stretch: so
// the reads under way lie in several pages, of which the processor's prefetchers follow each, and
// several of memory's banks work at once. Two cores of a Sapphire Rapids VM read 16 GB/s from one
// stream each, and 24 GB/s so; fewer streams and more both gave less (bench/README.md).
//
// For files of avx2/ and avx512/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

class NextFetch {
 public:
  static constexpr int64_t kStreams = 8;
  static constexpr int64_t kStep = 256;  // Bytes of words.

  NextFetch() = default;
  // `own_bytes`: the words of the product at hand, which calls words() once for each kStep of them.
  WEIR_INLINE NextFetch(const NextWeights& next, int64_t own_bytes)
      : word_(reinterpret_cast<const char*>(next.words)),
        first_(word_),
        end_(word_ + next.word_bytes),
        stretch_((next.word_bytes / kStep + kStreams - 1) / kStreams * kStep),
        left_(next.word_bytes / kStep),
        rate_(own_bytes > 0 ? (next.word_bytes + own_bytes - 1) / own_bytes : 0),
        scale_(reinterpret_cast<const char*>(next.scales)),
        scale_end_(scale_ + next.scale_bytes) {}

  WEIR_INLINE void words() {
    for (int64_t i = rate_; i > 0 && left_ > 0; --i, --left_) {
      repeat<kStep / 64>([&](auto line) WEIR_INLINE_LAMBDA {
        _mm_prefetch(word_ + 64 * line.value, _MM_HINT_T1);
      });
      word_ += stretch_;
      if (word_ >= end_) word_ = first_ += kStep;
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

// Calls read(address) for each kStep of `bytes`, having fetched them while the window before was
// read, as products do with weights; a window is about what a team's member claims (model/pass.h).
template <class F>
WEIR_INLINE void read_fetched(const uint8_t* at, int64_t bytes, const F& read) {
  constexpr int64_t kWindow = 64 << 10;
  for (int64_t begin = 0, end; begin < bytes; begin = end) {
    end = begin + kWindow < bytes ? begin + kWindow : bytes;
    const int64_t next = bytes - end < kWindow ? bytes - end : kWindow;
    NextFetch fetch({.words = at + end, .word_bytes = next}, end - begin);
    for (int64_t n = begin; n < end; n += NextFetch::kStep) {
      fetch.words();
      read(at + n);
    }
  }
}

}  // namespace weir::kernels
