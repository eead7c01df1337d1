// LatentAttention: attention whose keys and values come from one latent a token.
//
// Threads: plain data and free functions.
#pragma once

#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// Which of the tokens that it sees a row attends to: the top_k of best score, by small queries and
// keys of their own ("lightning indexer", DeepSeek-V3.2-Exp, equation 1):
//   score = sum over heads of weight[head] relu(query[head] . key)
// Of equal scores the earlier token's is better.
struct Indexer {
  int heads = 0;  // 0: there is none, and rows attend to all tokens that they see.
  int dim = 0;
  int top_k = 0;
  Rope::Layout layout = Rope::kHalf;  // The first numbers turn, by the angles of attention's rope.
  float norm_eps = 1e-6f;             // Of the keys' norm.
};

// Multi-head latent attention: a token leaves one latent vector, of which all heads' keys and
// values are linear functions, and one further key that all heads share, which alone is rotated.
struct LatentAttention {
  int num_heads = 0;
  int q_rank = 0;    // Queries come from a latent of their own; 0: from the input.
  int kv_rank = 0;   // Of the latent.
  int nope_dim = 0;  // Of a head's query and key, without the part that is rotated.
  int rope_dim = 0;  // Of that part.
  int v_head_dim = 0;
  float norm_eps = 1e-6f;  // Of the latents' norms.
  float scale = 0;         // Multiplies q.k.
  float latent_scale = 1;  // Multiplies the latent, after its norm.
  // Queries are multiplied by 1 + position_beta ln(1 + floor(position / position_step)).
  float position_beta = 0;
  int position_step = 1;
  bool bias = false;  // Of what makes the latents, and of o_proj.
  Rope rope{};
  Indexer indexer{};

  int q_dim() const { return nope_dim + rope_dim; }
  int latent_dim() const { return kv_rank + rope_dim; }  // What a token leaves.
};

std::string text(const LatentAttention& a);               // Its part of a line of describe().
Result<void> check(const LatentAttention& a, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const LatentAttention& a) { return &a.rope; }

}  // namespace weir::model
