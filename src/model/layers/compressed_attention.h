// CompressedAttentionLayer: attention to the last tokens' keys, and to the keys of complete blocks
// before, all of them or those that an indexer chooses (operations/compressed_attention.h). One
// softmax goes over all of these, block keys first, then the window's, and the head's sink.
//
// What a sequence remembers, in the order of needs(): the window's keys; what tokens leave for a
// block's key, and the blocks' keys (layers/block_keys.h); the same of the indexer.
//
// Threads: as Layer.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/layers/block_keys.h"
#include "model/layers/index_search.h"

namespace weir::model {

class CompressedAttentionLayer final : public Layer {
 public:
  // `ropes[rope_index]` is the operation's; `ropes` outlives the layer. No row stands at
  // `context_max` or beyond.
  CompressedAttentionLayer(const LayerSource& source, const CompressedAttention& spec,
                           const std::vector<RopeTable>& ropes, int rope_index,
                           int32_t context_max);

  static std::vector<kv::MemoryNeed> needs(const CompressedAttention& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  // What an indexer adds to a layer.
  struct Chooser {
    BlockKeys keys;
    IndexSearch search;
    Linear queries, weights;
  };

  void bind_indexer(const LayerSource& source, const std::vector<RopeTable>& ropes);
  // The weights that read the sublayer's input: two; four with blocks; seven with an indexer.
  std::array<const Linear*, 7> input_weights() const;
  size_t input_count() const { return chooser_ ? 7 : blocks_ ? 4 : 2; }
  template <size_t kCount>
  void project(const Pass& pass) const;
  void place(const Pass& pass, int32_t begin, int32_t end) const;
  void complete_blocks(const Pass& pass) const;
  void project_queries(const Pass& pass) const;
  void attend_all(const Pass& pass) const;
  void attend(const Pass& pass, int32_t row, int32_t head, int32_t heads) const;
  int32_t seen_keys(const Pass& pass, int32_t row, const void** keys) const;
  Angles angles(const Pass& pass, int32_t row) const;
  void turn(const Pass& pass, int32_t row, float* x, int32_t heads, const float* sin) const;
  void project_groups(const Pass& pass) const;

  // Of a group of heads.
  int32_t group_width() const { return spec_.num_heads / spec_.out_groups * spec_.head_dim; }

  CompressedAttention spec_;
  int32_t memory_;  // Which layer of the KV cache: the window's keys.
  int rope_index_;
  SublayerInput input_;
  SublayerOutput output_;
  Linear q_a_, q_b_, kv_;
  std::vector<Linear> out_a_;  // By group of heads.
  Linear out_b_;
  const float* q_norm_ = nullptr;
  const float* kv_norm_ = nullptr;
  const float* sinks_ = nullptr;
  std::optional<BlockKeys> blocks_;
  std::optional<Chooser> chooser_;
  uint8_t q_latent_forms_ = 0, out_a_forms_ = 0;

  Buffer<float> q_latents_;  // [rows, q_rank]
  FormsBuffer q_forms_;
  Buffer<float> queries_;   // [rows, heads * head_dim]
  Buffer<float> keys_;      // [rows, head_dim]
  Buffer<float> attended_;  // [rows, heads * head_dim], which is [rows * groups, group_width()]
  FormsBuffer attended_forms_;
  Buffer<int32_t> group_rows_;  // [groups, rows]: which of those rows are a group's.
  Buffer<float> joined_;        // [rows, groups * out_rank]
  FormsBuffer joined_forms_;
  Buffer<const void*> own_keys_;  // A member's own: where the keys lie that a row sees.
  Buffer<float> own_sin_;         // A member's own: [rope dim / 2], to turn back by.
};

}  // namespace weir::model
