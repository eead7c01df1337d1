// FeatureProjection: what the residual stream of a drafter begins with, of tokens and of features
// that another model has left of the positions before them (ModelSpec::features).
//
// Threads: immutable after load.
#pragma once

#include "model/layers/norm_embed.h"

namespace weir::model {

class FeatureProjection {
 public:
  // REQUIRES: the spec says features.
  FeatureProjection(WeightBinder& binder, const ModelSpec& spec, ScratchPlan& scratch);

  // Phases that end with a barrier: the rows of the residual stream. REQUIRES: the batch has
  // features, and its rows their places.
  void begin(const Pass& pass, const Embedding& embedding) const;

  // Of FeatureInput::kBeside: tokens, embedded and normed, [rows, hidden], for the whole pass.
  Buffer<float> beside() const { return beside_; }
  const Linear& weight() const { return projection_; }

 private:
  void gather_row(const Pass& pass, const Embedding& embedding, int32_t row) const;
  void project(const Pass& pass) const;
  // The features are projected already: by the model itself, in its pass before.
  bool skips_projection(const Pass& pass) const {
    return pass.batch.features.projected && !spec_.joins();
  }

  FeatureInput spec_;
  int32_t hidden_;
  Linear projection_;
  std::optional<NormWeights> norm_, token_norm_, out_norm_;
  Buffer<float> in_;  // [rows, projection_.k]
  Buffer<float> beside_;
  FormsBuffer forms_;
};

}  // namespace weir::model
