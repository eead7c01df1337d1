// ResidualOutput: what a sublayer of a tower gives is scaled, normed where the family does so, and
// added to the rows it was computed of, or takes their place.
//
// Threads: immutable after load.
#pragma once

#include <optional>

#include "encoder/layers/layer.h"
#include "encoder/product.h"

namespace weir::encoder {

class ResidualOutput {
 public:
  ResidualOutput(const LayerSource& source, int32_t width)
      : width_(width),
        factor_(source.stage.factor),
        limit_(source.stage.limit),
        replaces_(source.stage.replaces) {
    const Stage& stage = source.stage;
    if (stage.post) post_ = source.binder.norm(*stage.post, width);
    if (!stage.scale.empty()) scale_ = source.binder.vector(stage.scale, width);
    if (post_) given_ = source.scratch.ask<float>(model::BufferUse::kComputing, {.per_row = width});
  }

  // A block of what the sublayer gives.
  void take(const Pass& pass, const Block& block) const {
    for (int32_t r = 0; r < block.rows; ++r) {
      float* y = block.row_of(r);
      const int64_t at = int64_t{block.row + r} * width_ + block.begin;
      if (post_) {
        std::copy_n(y, block.columns(), pass.ws.at(given_) + at);
        continue;
      }
      if (scale_ != nullptr) pass.ops.product(scale_ + block.begin, block.columns(), y);
      put(pass, y, block.columns(), pass.rows + at);
    }
  }
  // After a barrier that follows the last block; ends with another where it has work.
  void finish(const Pass& pass) const {
    if (!post_) return;
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) {
        float* y = pass.ws.at(given_) + int64_t{r} * width_;
        normalise(pass.ops, *post_, limit_, y, width_, y);
        if (scale_ != nullptr) pass.ops.product(scale_, width_, y);
        put(pass, y, width_, pass.rows + int64_t{r} * width_);
      }
    });
    pass.barrier();
  }

 private:
  void put(const Pass& pass, const float* y, int32_t n, float* row) const {
    if (replaces_)
      std::copy_n(y, n, row);
    else
      pass.ops.add_scaled(y, factor_, n, row);
  }

  int32_t width_;
  float factor_, limit_;
  bool replaces_;
  std::optional<model::NormWeights> post_;
  const float* scale_ = nullptr;
  model::Buffer<float> given_{};
};

}  // namespace weir::encoder
