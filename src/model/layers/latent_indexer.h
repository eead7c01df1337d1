// LatentIndexer: chooses the tokens that a row of latent attention attends to, and says where their
// latents lie. A page holds, as keys, what tokens are chosen by, and their latents as values.
//
// Threads: as Layer.
#pragma once

#include <array>

#include "model/layers/index_search.h"

namespace weir::model {

class LatentIndexer {
 public:
  LatentIndexer(const LayerSource& source, const LatentAttention& spec, int rope_index);

  // Of the queries' latent; of the sublayer's input.
  const Linear& queries() const { return wq_; }
  const Linear& keys() const { return wk_; }
  const Linear& weights() const { return weights_; }
  std::array<const Linear*, 3> all() const { return {&wq_, &wk_, &weights_}; }
  // Where their products belong.
  float* queries_of(const Workspace& ws) const { return search_.queries_of(ws); }
  float* keys_of(const Workspace& ws) const { return ws.at(keys_); }
  float* weights_of(const Workspace& ws) const { return search_.weights_of(ws); }

  // What the cache keeps of a row: its key, after norm and rope, and its latent.
  void place(const Pass& pass, int32_t row, const float* latent) const;
  // Phases, of which the last ends with a barrier; none where rows see few tokens.
  void choose(const Pass& pass, const RowRange& rows) const { search_.choose(pass, rows); }
  // The row attends to some of the tokens that it sees; else to all.
  bool chooses(const Pass& pass, int32_t row) const { return search_.chooses(pass, row); }
  // Where the latents lie that a row attends to, ascending, in the member's memory until its next
  // call: the chosen ones, or all. REQUIRES: choose() has been called.
  struct Latents {
    const void* const* at = nullptr;
    int32_t count = 0;
  };
  Latents latents(const Pass& pass, int32_t row) const;

 private:
  LatentAttention spec_;
  int32_t memory_;  // Which layer of the KV cache.
  IndexSearch search_;
  Linear wq_, wk_, weights_;
  const float* norm_ = nullptr;
  const float* norm_bias_ = nullptr;

  Buffer<float> keys_;               // [rows, dim]
  Buffer<const void*> own_latents_;  // A member's own: where latents lie.
};

}  // namespace weir::model
