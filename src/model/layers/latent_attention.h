// LatentAttentionLayer: multi-head latent attention. The cache holds of each token its latent,
// after its norm, and the key that all heads share, after its rope: one head of keys whose first
// numbers are the values. Where an indexer chooses tokens, it keeps them (layers/latent_indexer.h).
//
// kv_b_proj is not applied to what the cache holds, but to the other side of each product
// ("absorbed"): a head's query times its key half is a query in the latent's space, and what that
// has attended times its value half is the head's output. Prompts and generated tokens go the same
// way, so a row's result does not depend on how many there are.
//
// Threads: as Layer.
#pragma once

#include <optional>
#include <vector>

#include "model/layers/attended_heads.h"
#include "model/layers/latent_indexer.h"

namespace weir::model {

class LatentAttentionLayer final : public Layer {
 public:
  // `rope_index`: which of the model's rope tables.
  LatentAttentionLayer(const LayerSource& source, const LatentAttention& spec, int rope_index);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  // Heads [first, last) of some rows: what a claim attends for, in memory of the member's own.
  struct Claim {
    RowRange rows;
    int32_t first = 0, last = 0;
    int32_t heads() const { return last - first; }
  };
  // How compute() is cut into claims.
  struct Cut {
    int32_t rows = 0, heads = 0;  // Of a claim.
    int64_t head_blocks = 0, claims = 0;
  };

  Cut cut(const Pass& pass, const RowRange& rows) const;
  void project_all(const Pass& pass) const;
  void project(const Pass& pass) const;
  void place(const Pass& pass, int32_t row) const;
  void project_queries(const Pass& pass) const;
  void turn(const Pass& pass, int32_t row, float* x) const;
  float position_factor(int32_t position) const;
  void absorb_queries(const Pass& pass, const Claim& claim) const;
  void attend(const Pass& pass, const Claim& claim) const;
  // What heads of some rows attend to, as AttendArgs has it.
  struct Seen {
    const int32_t* pages = nullptr;
    const void* const* keys = nullptr;
    int32_t first_position = 0;
    int32_t span_begin = 0, span_end = 0;
    int32_t first_key = 0;
  };
  void attend(const Pass& pass, const Claim& claim, const RowRange& rows, const Seen& seen) const;
  kernels::KvPages latents(const Pass& pass) const;
  void expand_values(const Pass& pass, const Claim& claim) const;
  const Linear& first_of_queries() const { return spec_.q_rank > 0 ? q_a_ : q_; }

  LatentAttention spec_;
  int32_t memory_;  // Which layer of the KV cache.
  int32_t rope_index_;
  SublayerInput input_;
  AttendedHeads out_;
  std::optional<LatentIndexer> indexer_;
  Linear q_a_, q_;  // Without q_a_ where queries come from the input.
  Linear kv_a_;
  std::vector<SplitHead> heads_;  // Of kv_b_proj: key half and value half.
  const float* q_norm_ = nullptr;
  const float* kv_norm_ = nullptr;

  Buffer<float> q_latents_;  // [rows, q_rank]
  FormsBuffer q_forms_;
  uint8_t q_latent_forms_ = 0;
  Buffer<float> queries_;  // [rows, heads * q_dim]
  Buffer<float> latents_;  // [rows, latent_dim]: what the step adds to the cache.
  // A member's own: [claim's rows, claim's heads] times latent_dim, and times kv_rank.
  Buffer<float> own_queries_, own_attended_;
};

}  // namespace weir::model
