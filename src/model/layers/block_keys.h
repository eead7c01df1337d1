// BlockKeys: keys for blocks of tokens, each made of what its tokens, and those of the block before
// where blocks overlap, have left (docs/deepseek-v4.md): per channel a softmax over the tokens, of
// gates that know the token's place in its block, weighs their inputs; then a norm and a rope.
//
// What tokens leave until their block is complete, inputs and gates, lies in pages of a window, as
// wide as a key has tokens; keys lie in pages of the spine, several a page or one in several
// (PagedNeed::tokens_per_key). So all of it is shared, given back and computed again like other
// keys, and a key's bits do not depend on how its tokens were cut into steps.
//
// Threads: as Layer.
#pragma once

#include <string>
#include <vector>

#include "kv/layout.h"
#include "model/layers/norm_embed.h"
#include "model/rope.h"

namespace weir::model {

class BlockKeys {
 public:
  struct Shape {
    int32_t dim = 0;
    int32_t ratio = 0;   // Tokens of a block.
    int32_t blocks = 1;  // That make a key: its own, and the one before it.
    float norm_eps = 1e-6f;
    // As IndexScores reads them, [dim][page_keys]; else key by key.
    bool transposed = false;

    int32_t tokens() const { return blocks * ratio; }
    int32_t width() const { return blocks * dim; }  // Of a token's inputs, and of its gates.
    // What tokens leave, and the keys.
    kv::PagedNeed tokens_need() const;
    kv::PagedNeed keys_need() const;
  };

  // `module` is bound, "self_attn.compressor"; `memory`: of tokens_need(), keys_need() comes next.
  // `ropes` outlives it.
  BlockKeys(const LayerSource& source, const std::string& module, const Shape& shape,
            int32_t memory, const std::vector<RopeTable>& ropes, int rope_index);

  const Linear& inputs() const { return inputs_; }
  const Linear& gates() const { return gates_; }
  // Where their products belong, [rows, width()].
  float* inputs_of(const Workspace& ws) const { return ws.at(input_rows_); }
  float* gates_of(const Workspace& ws) const { return ws.at(gate_rows_); }

  // What the cache keeps of a row.
  void place(const Pass& pass, int32_t row) const;
  // The key of the block that the row completes, if it does. REQUIRES: all rows of its slice are
  // placed, and a barrier has come after that.
  void complete(const Pass& pass, int32_t row) const;
  // The layer of the cache that has the keys.
  int32_t memory() const { return memory_ + 1; }
  // Where a block's key lies that is not transposed; `pages`: of the row's sequence.
  const uint8_t* key(const kernels::KvPages& kv, const int32_t* pages, int32_t block) const {
    return kv.base + pages[page_of(block)] * kv.page_bytes +
           int64_t{slot_of(block)} * shape_.dim * kv::element_bytes(kv.type);
  }

 private:
  int32_t last_token(int32_t block) const { return (block + 1) * shape_.ratio - 1; }
  int32_t page_of(int32_t block) const { return last_token(block) / kernels::kPageTokens; }
  int32_t slot_of(int32_t block) const {
    return last_token(block) % kernels::kPageTokens / shape_.ratio;
  }
  void weigh(const Pass& pass, int32_t row, int32_t block, int32_t channel, int32_t channels,
             float* key) const;
  void turn(const Pass& pass, int32_t position, float* key) const;
  void store(const Pass& pass, int32_t row, int32_t block, const float* key) const;

  Shape shape_;
  int32_t memory_;
  const std::vector<RopeTable>& ropes_;
  int rope_index_;
  Linear inputs_, gates_;
  const float* places_ = nullptr;  // [ratio, width()]: added to gates.
  const float* norm_ = nullptr;

  Buffer<float> input_rows_, gate_rows_;  // [rows, width()]
  // A member's own: a key; gates of some channels, [channels, tokens]; inputs, [tokens, channels].
  Buffer<float> own_key_, own_gates_, own_inputs_;
};

}  // namespace weir::model
