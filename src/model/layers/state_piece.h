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
#include <vector>

#include "model/pass.h"

namespace weir::model {

// Rows that take a head's state on in one call: few enough that their queries, keys and values stay
// in the second cache.
inline constexpr int32_t kRunRows = 64;

// The rows of a slice as states take them: first earlier drafts that were right, in rows of their
// own (Workspace::replay_begin), then what is certain, then drafts, which change a copy only.
struct StateRows {
  StateRows(const Pass& pass, const BatchSlice& slice) {
    const int32_t end = slice.row_begin + slice.rows;
    const int32_t replays = pass.batch.replays_of(slice);
    if (replays > 0) {
      replayed.begin = pass.ws.replay_begin + pass.batch.replays_before(slice);
      replayed.end = replayed.begin + replays;
    }
    certain = {slice.row_begin, end - slice.drafts};
    drafts = {end - slice.drafts, end};
  }

  RowRange replayed, certain, drafts;
};

// The numbers of an input that a row brings for a piece: from x + row * stride on.
struct StateInput {
  float* x = nullptr;
  int64_t stride = 0;
  int32_t count = 0;
};

// The tapes of a layer's states, from the number `first` of each token on.
class StateTape {
 public:
  StateTape(const Pass& pass, int32_t memory, const BatchSlice& slice)
      : kv_(pass.kv), rows_(pass, slice), memory_(memory), slot_(slice.memory.state) {}

  const StateRows& rows() const { return rows_; }
  // Puts what earlier drafts have brought where they are replayed.
  void restore(int64_t first, const StateInput& input) const {
    for (int32_t i = 0; i < rows_.replayed.count(); ++i)
      std::copy_n(at(i) + first, input.count, input.x + (rows_.replayed.begin + i) * input.stride);
  }
  // Keeps what the slice's drafts bring. REQUIRES: it is what the state would take.
  void keep(int64_t first, const StateInput& input) const {
    for (int32_t i = 0; i < rows_.drafts.count(); ++i)
      std::copy_n(input.x + (rows_.drafts.begin + i) * input.stride, input.count, at(i) + first);
  }
  // Both.
  void exchange(int64_t first, const StateInput& input) const {
    restore(first, input);
    keep(first, input);
  }

 private:
  float* at(int32_t token) const {
    return reinterpret_cast<float*>(kv_.tape(memory_, slot_, token));
  }

  const kv::KvCache& kv_;
  const StateRows rows_;
  const int32_t memory_, slot_;
};

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
        position_(pass.batch.first(slice) - pass.batch.replays_of(slice)),
        data_(at(slice.memory.state)) {
    if (position_ == 0) {
      std::fill_n(data_, count_, 0.0f);
    } else if (slice.memory.restored_from >= 0) {
      std::copy_n(at(slice.memory.restored_from), count_, data_);
    }
  }

  float* begin() const { return data_; }
  // Calls fn(rows) for the slice's rows in order, as many together as may change it in one call.
  template <class F>
  void take_rows(const StateRows& rows, const F& fn) {
    take_range(rows.replayed, fn);
    take_range(rows.certain, fn);
    if (rows.drafts.count() == 0) return;
    begin_drafts();
    take_range(rows.drafts, fn);
  }

 private:
  // How many of the slice's next `rows` may change it before the next checkpoint is due.
  int32_t together(int32_t rows) const {
    return marks_.empty() ? rows : std::min(rows, marks_.front().position - position_);
  }
  // So many rows have changed it, as many as together() allows.
  void after_rows(int32_t rows) {
    position_ += rows;
    if (marks_.empty() || marks_.front().position != position_) return;
    std::copy_n(data_, count_, at(marks_.front().slot));
    marks_ = marks_.subspan(1);
  }
  // What changes it from here on are drafts: they change a copy.
  void begin_drafts() {
    thread_local std::vector<float> copy;
    if (std::ssize(copy) < count_) copy.resize(static_cast<size_t>(count_));
    std::copy_n(data_, count_, copy.data());
    data_ = copy.data();
    marks_ = {};
  }
  template <class F>
  void take_range(const RowRange& rows, const F& fn) {
    for (int32_t begin = rows.begin; begin < rows.end;) {
      const RowRange run = {begin, begin + together(std::min(rows.end - begin, kRunRows))};
      fn(run);
      after_rows(run.count());
      begin = run.end;
    }
  }
  float* at(int32_t slot) const {
    return reinterpret_cast<float*>(kv_.state(memory_, slot)) + first_;
  }

  const kv::KvCache& kv_;
  std::span<const kv::StateMark> marks_;
  const int64_t first_, count_;
  const int32_t memory_;
  int32_t position_;
  float* data_;
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
