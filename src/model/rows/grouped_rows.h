// GroupedRows: rows of integer codes in groups with a scale and a zero point: w = s * (q - z), as
// GPTQ, AWQ and compressed-tensors store them. What differs is where codes, scales and zero points
// lie; that is for the classes that derive from it.
//
// The groups of columns are neighbours, or each column names its own: activation order. Then
// containers hold the columns sorted by group, where each group has as many as the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "model/row_source.h"

namespace weir::model {

class GroupedRows : public RowSource {
 public:
  struct Sizes {
    int32_t k = 0;
    int32_t bits = 0;
    int64_t group = 0;    // Columns that share a scale; the last group may have fewer.
    int64_t groups = 0;   // Of a row.
    int order_piece = 0;  // Which of the pieces has the group of each column, I32; 0: none.
    // With that piece: the columns sorted by group; empty where groups differ in size.
    std::vector<int32_t> order{};
    DType scale_type = DType::kF16;
    std::optional<uint8_t> zero{};  // Where all groups have the same zero point.
  };

  std::span<const int32_t> order() const override { return sizes_.order; }
  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;
  void floats(const Bases& bases, int64_t first, int32_t count, float* out) const override;

 protected:
  // `name`: of the format, before bits and group.
  GroupedRows(const std::string& name, const std::string& layout, const Sizes& sizes);

  const Sizes& sizes() const { return sizes_; }
  // Codes of rows [first, first + count), as unsigned numbers.
  virtual void codes(const Bases& bases, int64_t first, int32_t count,
                     uint8_t* const* out) const = 0;
  virtual float scale(const Bases& bases, int64_t row, int64_t group) const = 0;
  // Not called where Sizes has the zero point.
  virtual uint8_t zero(const Bases&, int64_t /*row*/, int64_t /*group*/) const { return 0; }

 private:
  Sizes sizes_;
};

}  // namespace weir::model
