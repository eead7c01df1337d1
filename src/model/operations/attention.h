// Attention: softmax attention with keys and values of each token.
//
// Threads: plain data and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/operations/norm.h"
#include "model/operations/rope.h"

namespace weir::model {

struct Attention {  // MHA, GQA, MQA.
  enum QkNorm : uint8_t {
    kNoQkNorm,
    kPerHead,   // With the same weights for each head.
    kAllHeads,  // All heads together.
    kEachHead,  // With weights of each head's own: [heads, head_dim].
  } qk_norm = kNoQkNorm;
  bool qk_norm_after_rope = false;
  Norm::Kind qk_norm_kind = Norm::kRms;  // This and the next as Norm's.
  bool qk_norm_weight = true;
  bool qk_norm_bias = false;
  float qk_norm_offset = 0;
  float qk_norm_eps = 1e-6f;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;     // Of queries and keys.
  int v_head_dim = 0;   // Of values, and of what o_proj reads; 0: head_dim.
  int window = 0;       // Sliding window in tokens; 0 attends to everything.
  bool chunks = false;  // Not a window: a token sees those of its own chunk of so many.
  float scale = 0;      // Multiplies q.k.
  float logit_softcap = 0;
  float qkv_limit = 0;  // Above 0: what q_proj, k_proj and v_proj give is at most this, either way.
  // Queries are multiplied by
  // 1 + position_beta ln(1 + floor((position + position_shift) / position_step)).
  float position_beta = 0;
  int position_step = 1;
  int position_shift = 0;
  bool values_are_keys = false;  // What k_proj gives, before its norm and rope.
  bool v_norm = false;           // Of each head, without weights; qk_norm_eps.
  bool qkv_bias = false;
  bool key_bias = true;  // Else that is one of queries and values alone.
  bool out_bias = false;
  // Above 0: each key-value head's keys, before norm and rope, and values are the last so many
  // tokens' by learned weights.
  int conv_taps = 0;
  std::optional<Norm> out_norm{};  // Of all heads together, before o_proj.
  bool sinks = false;  // One learned logit per head joins the softmax.
  // The sigmoid of a gate multiplies what a head has attended.
  enum OutGate : uint8_t {
    kNoGate,
    kAfterQuery,  // Its rows follow the head's query in q_proj.
    kOwnModule,   // self_attn.gate_proj.
  } out_gate = kNoGate;
  Rope rope{};

  int v_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  int q_rows() const {
    return head_dim + (out_gate == kAfterQuery ? v_dim() : 0);
  }  // Of a head in q_proj.
};

std::string text(const Attention& a);               // Its part of a line of describe().
Result<void> check(const Attention& a, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Attention& a) { return &a.rope; }

}  // namespace weir::model
