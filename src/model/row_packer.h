// RowPacker: some rows of a RowSource, on their way to what kernels read: codes in containers, or
// float32.
//
// Threads: immutable; different blocks of rows may be packed by several threads.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/repack.h"
#include "model/linear.h"
#include "model/row_source.h"

namespace weir::model {

// Which rows of those stored are a matrix's: runs of `length`, each `step` rows after the one
// before.
struct RowRuns {
  int64_t length = 0;  // 0: one run.
  int64_t step = 0;

  bool one() const { return length == 0; }
  int64_t stored(int64_t row) const { return one() ? row : row / length * step + row % length; }
};

class RowPacker {
 public:
  // The `n` rows of `source` from `first` on, or those that `runs` has from there on, of `k`
  // numbers each. `sorted`: their columns may come in the source's order().
  RowPacker(std::shared_ptr<const RowSource> source, int64_t first, const RowRuns& runs, int32_t n,
            int32_t k, bool sorted);

  // Memory for the rows: of linear()'s codes, or its float8 numbers (words) with their scales, or
  // its floats.
  struct Target {
    uint8_t* words = nullptr;
    uint8_t* scales = nullptr;
    float* floats = nullptr;
  };

  // A matrix without weights, in the form in which kernels hold these rows.
  Linear linear() const;
  // Float8 rows: what their scales take, of which each row has its own. 0: they are none.
  int64_t e4m3_scale_bytes() const { return int64_t{n_} * e4m3_scales() * 4; }

  // Rows [begin, end) to their places in `to`, the memory of all of them; `begin` is a multiple of
  // 16. False: a number among them is infinite or none.
  bool pack(const RowSource::Bases& bases, int32_t begin, int32_t end, const Target& to) const;
  // All rows, as the columns of `out` [k, n].
  bool pack_turned(const RowSource::Bases& bases, float* out) const;

  // Whether bytes in the same places mean the same numbers, in the same form.
  bool same(const RowPacker& other) const;
  // What decides where bits lie, as text.
  std::string text() const;

 private:
  // Calls fn(i, first, count) for rows that are neighbours in the source; i counts from `begin` on.
  template <class F>
  void for_neighbours(int32_t begin, int32_t end, F&& fn) const;
  void read_floats(const RowSource::Bases& bases, int32_t begin, int32_t end, float* out) const;
  bool pack_e4m3(const RowSource::Bases& bases, int32_t begin, int32_t end, const Target& to) const;
  // Scales of a row.
  int32_t e4m3_scales() const {
    return e4m3_columns_ == 0 ? 0 : (k_ + e4m3_columns_ - 1) / e4m3_columns_;
  }

  std::shared_ptr<const RowSource> source_;
  int64_t first_;
  RowRuns runs_;
  int32_t n_, k_;
  std::optional<kernels::QuantShape> held_;
  int32_t e4m3_columns_ = 0;
};

}  // namespace weir::model
