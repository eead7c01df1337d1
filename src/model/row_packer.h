// RowPacker: some rows of a RowSource, on their way to what kernels read: codes in containers,
// float8 numbers, or float32.
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

  // Memory for what linear() holds.
  struct Target {
    uint8_t* numbers = nullptr;  // Words of codes, bytes of float8, floats: number_bytes().
    uint8_t* scales = nullptr;   // scale_bytes().
  };

  // A matrix without weights, in the form in which kernels hold these rows.
  Linear linear() const;

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
  bool pack_codes(const RowSource::Bases& bases, int32_t begin, int32_t end,
                  const Target& to) const;
  bool pack_float8(const RowSource::Bases& bases, int32_t begin, int32_t end,
                   const Target& to) const;

  std::shared_ptr<const RowSource> source_;
  int64_t first_;
  RowRuns runs_;
  int32_t n_, k_;
  // As codes, or as float8 numbers; else as float32.
  std::optional<kernels::QuantShape> codes_;
  std::optional<kernels::Float8Matrix> float8_;
};

}  // namespace weir::model
