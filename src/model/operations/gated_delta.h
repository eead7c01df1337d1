// GatedDelta: linear attention by the gated delta rule.
//
// Threads: plain data and free functions.
#pragma once

#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// Linear attention that keeps a state of [key_dim, value_dim] for each value head, by the gated
// delta rule (kernels::DeltaRun), after a short convolution of queries, keys and values.
struct GatedDelta {
  int key_heads = 0;
  int value_heads = 0;  // A multiple; value head h belongs to key head h / group().
  int key_dim = 0;
  int value_dim = 0;
  int conv_taps = 0;
  // Value head h belongs to key head h % key_heads instead, as GGUF files have them.
  bool tiled = false;
  bool key_decays = false;    // Each element of a key has a decay of its own, not each value head.
  int decay_rank = 0;         // Decays come from a latent so wide; 0: from the input.
  int gate_rank = 0;          // So do output gates.
  float beta_most = 1;        // What its sigmoid is multiplied by.
  bool sigmoid_gate = false;  // The output's gate acts by its sigmoid, not by silu.
  float norm_eps = 1e-6f;     // Of the norm of what a head gives, before its gate.

  // The i-th value head of a key head.
  int value_head(int key_head, int i) const {
    return tiled ? i * key_heads + key_head : key_head * group() + i;
  }
  int group() const { return value_heads / key_heads; }
  int decays() const { return key_decays ? key_dim : 1; }  // Of a value head.
};

std::string text(const GatedDelta& d);               // Its part of a line of describe().
Result<void> check(const GatedDelta& d, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const GatedDelta&) { return nullptr; }

}  // namespace weir::model
