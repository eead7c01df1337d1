// StatePiece: a part of a layer's states as a slice changes it, row by row: where it comes from,
// and the checkpoints that it leaves (kv/checkpoints.h). A layer cuts its states into as many as
// are changed by themselves.
//
// Threads: one writer of a piece; no other thread uses the slots that it copies from and to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "model/pass.h"

namespace weir::model {

// Rows that take a head's state on in one call: few enough that their queries, keys and values stay
// in the second cache.
inline constexpr int32_t kRunRows = 64;

class StatePiece {
 public:
  // `count` numbers from `first` on, of the layer `memory` of the cache.
  StatePiece(const Pass& pass, int32_t memory, const BatchSlice& slice, int64_t first,
             int64_t count)
      : kv_(pass.kv),
        marks_(slice.memory.marks),
        first_(first),
        count_(count),
        memory_(memory),
        position_(pass.batch.first(slice)),
        data_(at(slice.memory.state)) {
    if (position_ == 0) {
      std::fill_n(data_, count_, 0.0f);
    } else if (slice.memory.restored_from >= 0) {
      std::copy_n(at(slice.memory.restored_from), count_, data_);
    }
  }

  float* begin() const { return data_; }

  // How many of the slice's next `rows` may change it before the next checkpoint is due.
  int32_t together(int32_t rows) const {
    return marks_.empty() ? rows : std::min(rows, marks_.front().position - position_);
  }
  // The slice's next row has changed it, or as many rows as together() allows.
  void after_row() { after_rows(1); }
  void after_rows(int32_t rows) {
    position_ += rows;
    if (marks_.empty() || marks_.front().position != position_) return;
    std::copy_n(data_, count_, at(marks_.front().slot));
    marks_ = marks_.subspan(1);
  }

 private:
  float* at(int32_t slot) const {
    return reinterpret_cast<float*>(kv_.state(memory_, slot)) + first_;
  }

  const kv::KvCache& kv_;
  std::span<const kv::StateMark> marks_;
  const int64_t first_, count_;
  const int32_t memory_;
  int32_t position_;
  float* const data_;
};

// A phase of pairs of a slice and one of `count` pieces, which members claim: fn(slice, piece). The
// last slices, which are those of prompts, come first: what is left for the end of the phase is
// small.
template <class F>
void claim_pieces(const Pass& pass, int32_t count, const F& fn) {
  const int64_t total = std::ssize(pass.batch.slices) * count;
  claim_blocks(pass, total, [&](int64_t claimed) {
    const int64_t item = total - 1 - claimed;
    fn(pass.batch.slices[static_cast<size_t>(item / count)], static_cast<int32_t>(item % count));
  });
  pass.team.barrier(pass.member);
}

}  // namespace weir::model
