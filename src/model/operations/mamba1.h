// Mamba1: a state-space model whose channels have states of their own, each of which fades at its
// own rate.
//
// Threads: plain data and free functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// Linear layers of the input give x and z, [inner]; x passes a convolution over the last
// `conv_taps` tokens and silu, and a linear layer of it gives s, [step_rank], B and C, [state_dim].
// The states h of a channel, [state_dim], and rates A of their own, then give
//   step = softplus(linear(s));  h = exp(step A) h + step B x;  y = C . h + D x
// and a linear layer reads y silu(z). (Gu and Dao 2023.)
struct Mamba1 {
  int inner = 0;  // Channels.
  int state_dim = 0;
  int step_rank = 0;
  int conv_taps = 0;
  bool conv_bias = false;
  bool bias = false;  // Of the first linear layers and the last one.
  enum Norms : uint8_t {
    kNone,
    kPlain,    // s, B and C are normalised, without weights.
    kWeighted  // With weights, as Jamba does (Lieber et al. 2024, section 6.4).
  } norms = kNone;
  float norm_eps = 1e-6f;

  int parameters() const { return step_rank + 2 * state_dim; }  // s, B and C.
};

std::string text(const Mamba1& m);               // Its part of a line of describe().
Result<void> check(const Mamba1& m, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Mamba1&) { return nullptr; }

}  // namespace weir::model
