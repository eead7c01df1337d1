// QuantisingRows: the rows of another source, quantised as they are read, by MLX's rule: codes of a
// few bits in groups with a scale and a bias, which are rounded to a type. What `weir quantize`
// writes, and what --quantize holds.
//
// Pieces: those of the other source.
#pragma once

#include <memory>

#include "base/dtype.h"
#include "model/row_source.h"

namespace weir::model {

class QuantisingRows final : public RowSource {
 public:
  // REQUIRES: k is a multiple of the group.
  QuantisingRows(std::shared_ptr<const RowSource> from, int32_t k, int32_t bits, int32_t group,
                 DType scale_type);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;

 private:
  std::shared_ptr<const RowSource> from_;
  int32_t k_, bits_, group_;
  DType scale_type_;
};

// A group of weights as codes of `bits` bits; w ~ scale * code + bias, before these are rounded.
struct QuantisedGroup {
  float scale = 0;
  float bias = 0;
};
QuantisedGroup quantise_group(const float* weights, int32_t count, int32_t bits, uint8_t* codes);

}  // namespace weir::model
