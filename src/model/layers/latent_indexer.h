// LatentIndexer: chooses the tokens that a row of latent attention attends to, and says where their
// latents lie. A page holds, as keys, what tokens are chosen by, and their latents as values.
//
// A row that sees no more tokens than it may choose attends to all, and nothing is scored. Scores
// are sums in float32 of keys as the cache holds them, in one order: a row chooses the same among
// whatever rows it is computed.
//
// Threads: as Layer.
#pragma once

#include <array>

#include "model/layers/best_positions.h"
#include "model/layers/norm_embed.h"

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
  float* queries_of(const Workspace& ws) const { return ws.at(queries_); }
  float* keys_of(const Workspace& ws) const { return ws.at(keys_); }
  float* weights_of(const Workspace& ws) const { return ws.at(row_weights_); }

  // What the cache keeps of a row: its key, after norm and rope, and its latent.
  void place(const Pass& pass, int32_t row, const float* latent) const;
  // Phases, of which the last ends with a barrier; none where rows see few tokens.
  void choose(const Pass& pass, const RowRange& rows) const;
  // The row attends to some of the tokens that it sees; else to all.
  bool chooses(const Pass& pass, int32_t row) const {
    return pass.ws.position[row] >= spec_.indexer.top_k;
  }
  // Where the latents lie that a row attends to, ascending, in the member's memory until its next
  // call: the chosen ones, or all. REQUIRES: choose() has been called.
  struct Latents {
    const void* const* at = nullptr;
    int32_t count = 0;
  };
  Latents latents(const Pass& pass, int32_t row) const;

 private:
  // Of `parts` parts of the tokens that a row sees, one: offers them, [0, count) of the result.
  int32_t search(const Pass& pass, int32_t row, int32_t part, int32_t parts,
                 ScoredPosition* best) const;
  void keep(const Pass& pass, int32_t row, ScoredPosition* best, int32_t count) const;
  void turn(const Pass& pass, int32_t row, float* x, int32_t heads) const;
  const int32_t* pages_of(const Pass& pass, int32_t row) const;

  LatentAttention spec_;
  int32_t memory_;  // Which layer of the KV cache.
  int32_t rope_index_;
  Linear wq_, wk_, weights_;
  const float* norm_ = nullptr;
  const float* norm_bias_ = nullptr;

  Buffer<float> queries_;      // [rows, heads * dim]
  Buffer<float> keys_;         // [rows, dim]
  Buffer<float> row_weights_;  // [rows, heads]
  Buffer<int32_t> chosen_;     // [rows, top_k], ascending.
  // A member's own: a row's queries after their rope, scores of some tokens, and where latents lie.
  Buffer<float> own_queries_, own_scores_;
  Buffer<const void*> own_latents_;
  // A part's of a row's tokens, or a member's own: [2 * top_k], and how many are of use.
  Buffer<ScoredPosition> best_;
  Buffer<int32_t> best_count_;
};

}  // namespace weir::model
