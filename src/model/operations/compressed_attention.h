// CompressedAttention: attention to the last tokens as they are, and to earlier ones in blocks
// (DeepSeek V4; docs/deepseek-v4.md has the formulas).
//
// Threads: plain data and free functions.
#pragma once

#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// One head of keys, which are the values too, for all heads of queries. A row sees the keys of a
// window, and one key for each block of `ratio` tokens that is complete; or, of those, the ones
// that an indexer chooses.
struct CompressedAttention {
  int num_heads = 0;
  int head_dim = 0;
  int q_rank = 0;  // Of the latent that queries are made of.
  int window = 0;
  int ratio = 0;          // Tokens of a block; 0: there are no blocks.
  bool overlaps = false;  // A block's key is made of the tokens of the block before, too.
  // The indexer: queries of the queries' latent, keys of blocks by weights of their own.
  int index_heads = 0;  // 0: none, and rows attend to all blocks that they see.
  int index_dim = 0;
  int top_k = 0;
  // Heads are cut into groups, each of which is projected to so many numbers before they are
  // joined.
  int out_groups = 1;
  int out_rank = 0;
  float norm_eps = 1e-6f;
  float scale = 0;  // Multiplies q.k.
  Rope rope{};      // Of the last numbers of a head; the output is turned back.

  // Blocks whose tokens make a key.
  int key_blocks() const { return overlaps ? 2 : 1; }
};

std::string text(const CompressedAttention& a);               // Its part of a line of describe().
Result<void> check(const CompressedAttention& a, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const CompressedAttention& a) { return &a.rope; }

}  // namespace weir::model
