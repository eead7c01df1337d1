// Head: the end of the network: the last norm, the logits, and what is wanted of a batch's rows.
//
// Threads: immutable after load; every member calls forward().
#pragma once

#include <cstdint>

#include "model/layers/norm_embed.h"

namespace weir::model {

class Head {
 public:
  // `streams` and `hyper`: ModelSpec::streams and ::hyper, or null. `shared`: whose matrix it has
  // after a norm of its own, of that so many rows as ModelSpec::head_rows says; or null.
  Head(WeightBinder& binder, const ModelSpec& spec, const Embedding& embedding,
       const StreamTable* streams, const HyperStreams* hyper, const Head* shared = nullptr);

  // What this member most likely multiplies by first.
  kernels::NextWeights first_weights(const Pass& pass) const;
  // For the rows that are wanted: last.leave(), norm, logits; gives them to the pass's sink. Ends
  // with a barrier. `last` null: it has left. REQUIRES: an entry of kVerify has kLogitRowsMax rows
  // at most.
  void forward(const Pass& pass, const Layer* last) const;
  // The norm of rows [begin, end) of the residual stream, which lie `stride` numbers apart in `out`.
  void normalise_stream(const Pass& pass, int32_t begin, int32_t end, float* out,
                        int64_t stride) const;

  uint8_t forms() const { return weight_.forms(); }
  const Linear& weight() const { return weight_; }

 private:
  // Some rows of an entry of Batch::wanted, and the first one's place among the logits at hand.
  struct Part {
    int32_t wanted = 0;
    int32_t first = 0;
    int32_t rows = 0;
    int32_t place = 0;
  };
  // Rows whose logits are computed at once.
  struct Chunk;

  void share(const Head& other, int32_t rows);
  void normalise_rows(const Pass& pass, const Layer* last, int32_t logits, int32_t begin,
                      int32_t end) const;
  void give_hidden(const Pass& pass, int32_t logits) const;
  void scale_columns(const kernels::GemmRange& range) const;
  void compute_logits(const Pass& pass, int32_t first, const Chunk& chunk) const;
  void give_logits(const Pass& pass, const Chunk& chunk) const;

  Linear weight_;
  NormWeights norm_;
  const float* row_scales_ = nullptr;  // [vocab]: by which logits are multiplied, or none.
  const StreamTable* streams_;
  const HyperStreams* hyper_;
  float scale_;
  float softcap_;
};

}  // namespace weir::model
