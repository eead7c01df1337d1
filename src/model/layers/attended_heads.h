// AttendedHeads: what heads have attended, on its way through o_proj to the residual stream. The
// kinds of attention share it.
//
// Threads: as Layer.
#pragma once

#include <optional>
#include <string_view>

#include "model/layers/norm_embed.h"

namespace weir::model {

class AttendedHeads {
 public:
  AttendedHeads() = default;
  // `width`: of all heads side by side. `together`: columns of which those that finish() is told of
  // are multiples. `module`: what projects them.
  // `norm`: of a whole row, before it is projected.
  static AttendedHeads bind(const LayerSource& source, int32_t width, int32_t together, bool bias,
                            std::string_view module = "self_attn.o_proj",
                            const std::optional<Norm>& norm = {});

  // Where heads leave a row, [width()].
  float* row(const Pass& pass, int64_t row) const { return pass.ws.at(x_) + row * o_.k; }
  int32_t width() const { return o_.k; }
  // Some columns of rows [begin, end) are there.
  void finish(const Pass& pass, int32_t begin, int32_t end, int32_t column, int32_t columns) const;
  // Phases, of which the last ends with a barrier, for rows that are all there.
  void project(const Pass& pass, const RowRange& rows, const kernels::NextWeights& after) const;
  // As Layer::leave().
  void leave(const Pass& pass, int32_t begin, int32_t end) const;
  bool leaves_nothing() const { return output_.adds_columns(); }
  // What this member most likely multiplies by first in project().
  kernels::NextWeights first_weights(const Pass& pass) const {
    return SublayerOutput::first_weights(pass, o_);
  }
  const Linear& weight() const { return o_; }

 private:
  void convert(const Pass& pass, const ActivationForms::Part& part) const;

  SublayerOutput output_;
  Linear o_;
  std::optional<NormWeights> norm_;
  // Columns that come together fill whole groups of o_proj's activations, so that the member that
  // has computed them can convert them at once.
  bool converts_heads_ = false;
  Buffer<float> x_;  // [rows, width()]
  FormsBuffer forms_;
};

}  // namespace weir::model
