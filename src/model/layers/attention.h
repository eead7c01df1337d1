// AttentionLayer: grouped-query attention over paged keys and values, its own or another layer's,
// with optional biases, norms on Q and K, partial or no rope, sliding window, soft cap, sinks and
// gates. Where its keys and values become codes (kv/layout.h), queries, keys and values are turned
// before they are stored or meet, and what is attended is turned back.
//
// Threads: as Layer.
#pragma once

#include "model/layers/attended_heads.h"

namespace weir::model {

class AttentionLayer final : public Layer {
 public:
  // `rope_index`: which of the model's rope tables.
  AttentionLayer(const LayerSource& source, const Attention& spec, int rope_index);

  // Of the tokens that a convolution of keys and values looks back on.
  static int64_t state_bytes(const Attention& spec);
  static int64_t tape_bytes(const Attention& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  // REQUIRES: no norm over all heads, no convolution.
  void remember(const Pass& pass) const override;
  LayerFacts facts() const override;

 private:
  enum Part { kQ, kK, kV, kGate };

  std::vector<NormWeights> bind_head_norms(const LayerSource& source, const char* module,
                                           int32_t heads) const;
  std::vector<float> bind_taps(const LayerSource& source, const char* name, int32_t dim) const;
  void ask_scratch(ScratchPlan& scratch);
  ColumnShares<4> shares(const Pass& pass) const;
  void project_all(const Pass& pass) const;
  // Of Q, K, V and gates.
  static Activations input(const Pass& pass);
  void project(const Pass& pass) const;
  void convolve_all(const Pass& pass) const;
  void convolve(const Pass& pass, const BatchSlice& slice, int32_t head) const;
  // How many of the weight's rows one head has.
  int32_t head_columns(Part part) const;
  int32_t q_width() const { return spec_.num_heads * spec_.head_dim; }
  float* heads_of(const Pass& pass, Part part, int64_t row, int32_t first, int32_t last) const;
  void place(const Pass& pass, Part part, int32_t begin, int32_t end, int32_t first,
             int32_t last) const;
  void turn_heads(const Pass& pass, Part part, int32_t row, int32_t first, int32_t heads,
                  float* x) const;
  float position_factor(int32_t position) const;
  void store_heads(const Pass& pass, Part part, int32_t row, int32_t first, int32_t heads,
                   const float* x) const;
  void gate_heads(const Pass& pass, int32_t begin, int32_t end, int32_t first, int32_t heads) const;
  void encode_pages(const Pass& pass) const;
  void attend(const Pass& pass, const RowRange& rows) const;
  void attend_rows(const Pass& pass, const BatchSlice& slice, int32_t row,
                   kernels::AttendArgs args) const;
  void attend_tile(const Pass& pass, const BatchSlice& slice, int32_t tile, int32_t kv_head) const;
  void normalise_heads(const Pass& pass, Part part, int32_t first, int32_t heads, float* x) const;

  Attention spec_;
  int32_t memory_;  // Which layer of the KV cache.
  int32_t rope_index_;
  SublayerInput input_;
  AttendedHeads out_;
  Linear q_, k_, v_;  // Without k_ and v_ where the memory is another layer's.
  Linear gate_;       // Of a module of its own.
  std::vector<NormWeights> q_norms_, k_norms_;  // One for all heads, or one for each.
  const float* sinks_ = nullptr;                // [heads]
  int32_t state_ = -1;                          // Which layer of the cache: the convolution's.
  std::vector<float> k_taps_, v_taps_;          // [kv_heads][taps][dim]

  Buffer<float> projected_, keys_, values_, gates_;  // [rows, width of q_, k_, v_ or gate_]
  Buffer<float> queries_;  // [rows, heads * head_dim]: those projected, unless gates lie between.
};

}  // namespace weir::model
