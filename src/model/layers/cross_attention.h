// CrossAttentionLayer: what CrossAttention describes. Keys and values lie in the slot of the
// sequence's sound (kv::CrossNeed), as in pages, and remember() fills it. Tokens of prompts and
// generated ones are computed alike.
//
// Threads: as Layer.
#pragma once

#include "model/layers/attended_heads.h"

namespace weir::model {

class CrossAttentionLayer final : public Layer {
 public:
  // `index`: which of the layers with cross attention it is.
  CrossAttentionLayer(const LayerSource& source, const CrossAttention& spec, int32_t index);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  // Rows are the encoder's; those of the slice go to its slot, from its first position on.
  void remember(const Pass& pass) const override;
  LayerFacts facts() const override;

 private:
  ColumnShares<1> query_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void attend(const Pass& pass, const RowRange& rows) const;
  void attend_tile(const Pass& pass, const BatchSlice& slice, int32_t tile, int32_t head) const;
  void give_weights(const Pass& pass) const;
  void give_weights(const Pass& pass, const WantedWeights& wanted) const;

  CrossAttention spec_;
  int32_t memory_;  // Which layer of the cache.
  int32_t index_;
  SublayerInput input_;
  AttendedHeads out_;
  Linear q_, k_, v_;
  Buffer<float> queries_, keys_, values_;  // [rows, heads * head_dim]
};

}  // namespace weir::model
