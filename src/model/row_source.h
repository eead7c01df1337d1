// RowSource: the rows of a quantised module that is stored in no form that kernels read: neither
// floats nor MLX's affine groups. It knows how the module's tensors are laid out, not where they
// are: the same source reads them where they are mapped, and where an expert's bytes were staged.
//
// Threads: immutable; called by several threads at once, at load, or while experts are unpacked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/row_numbers.h"

namespace weir::model {

class RowSource {
 public:
  static constexpr size_t kPiecesMax = 5;
  // Where the module's tensors begin, in the order that the source defines; they need not be
  // aligned.
  using Bases = std::array<const std::byte*, kPiecesMax>;

  virtual ~RowSource() = default;

  // What the rows are as codes in groups; nothing where only floats() gives them.
  const std::optional<kernels::QuantShape>& shape() const { return shape_; }
  // What people call the format: "GPTQ 4-bit g128".
  const std::string& name() const { return name_; }
  // All that decides what the bytes mean: two sources with one layout are the same.
  const std::string& layout() const { return layout_; }

  // Which stored column is column i of what rows() gives: those of a group lie together there.
  // Empty: columns come as they are stored. floats() gives them so in any case.
  virtual std::span<const int32_t> order() const { return {}; }
  // Rows [first, first + count) as RowNumbers, in the form of shape(). REQUIRES: there is one.
  virtual void rows(const Bases& bases, int64_t first, int32_t count,
                    kernels::RowNumbers* out) const = 0;
  // Of rows of float8 E4M3 numbers: how many rows, from a multiple of them on, and columns,
  // likewise, share a scale. Columns are as Float8Matrix wants them. Nothing where only floats()
  // gives rows.
  struct Float8Scales {
    int64_t rows = 1;
    int32_t columns = 0;
  };
  virtual std::optional<Float8Scales> float8() const { return {}; }
  // Such rows: their numbers, [count, k], and of each row the scales of its columns. REQUIRES:
  // there is a float8().
  virtual void float8_rows(const Bases& bases, int64_t first, int32_t count, uint8_t* numbers,
                           float* scales) const;
  // The same rows as numbers, [count, k].
  virtual void floats(const Bases& bases, int64_t first, int32_t count, float* out) const;

 protected:
  RowSource(std::string name, std::string layout, std::optional<kernels::QuantShape> shape)
      : name_(std::move(name)), layout_(name_ + " " + std::move(layout)), shape_(shape) {}

 private:
  std::string name_;
  std::string layout_;
  std::optional<kernels::QuantShape> shape_;
};

// The largest group of a QuantShape that divides `k` and `group`; 0: there is none.
int32_t common_group(int32_t k, int64_t group);

}  // namespace weir::model
