// TokenTable: what each token brings to each layer beside its embedding (ModelSpec::token_inputs):
//   (norm(projection(embedding) / sqrt(hidden)) + sqrt(width) table[token]) / sqrt(2)
// with the norm over each layer's numbers.
//
// Threads: immutable after load.
#pragma once

#include "model/layers/norm_embed.h"

namespace weir::model {

class TokenTable {
 public:
  // REQUIRES: the spec says token_inputs.
  TokenTable(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch);

  // Phases that end with a barrier, once the residual stream holds the embeddings.
  void begin(const Pass& pass) const;

  Buffer<float> inputs() const { return inputs_; }  // [rows, width()], for the whole pass.
  int32_t width() const { return table_.k; }        // Of all layers.

 private:
  void finish_row(const Pass& pass, int32_t row) const;

  int32_t hidden_;
  int32_t layer_width_;
  Linear table_;       // [vocabulary, width()]
  Linear projection_;  // [width(), hidden]
  NormWeights norm_;
  Buffer<float> inputs_;
  Buffer<float> row_;  // Per member: [width()].
};

}  // namespace weir::model
