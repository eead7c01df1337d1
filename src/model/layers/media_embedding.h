// MediaEmbedding: the tokens that the projectors of towers embed (model/media_tokens.h).
//
// Threads: immutable after load.
#pragma once

#include <span>
#include <vector>

#include "model/layers/norm_embed.h"
#include "model/media_tokens.h"

namespace weir::model {

class MediaEmbedding {
 public:
  // `binder` knows names as the file has them: projectors lie beside the text's tensors.
  MediaEmbedding(WeightBinder& binder, std::span<const MediaTokens> all, int32_t hidden,
                 ScratchPlan& scratch);

  // Writes row `row` of the residual stream; false, and nothing, for any other token.
  bool embed(const Pass& pass, int32_t row, int32_t token) const;

 private:
  struct Table {
    int32_t first = 0;
    Linear rows{}, projection{};
    NormWeights norm{};
    float eps = 0;
  };

  std::vector<Table> tables_;
  Buffer<float> row_;
};

}  // namespace weir::model
