// Mamba2: a state-space model whose state fades by one number a head and token.
//
// Threads: plain data and free functions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// One linear layer of the input gives z and x, [heads, head_dim], B and C, [groups, state_dim], and
// a step of each head; x, B and C pass a convolution over the last `conv_taps` tokens and silu. The
// state S of a head, [state_dim, head_dim], and its group's B and C then give
//   step = clamp(softplus(step + step_bias));  S = exp(step A) S + B (x) (step x)
//   y = S^T C + D x
// and what all heads give meets the gate z, a norm, and a linear layer. (Dao and Gu 2024.)
struct Mamba2 {
  int heads = 0;
  int head_dim = 0;
  int groups = 0;  // Of heads that share B and C.
  int state_dim = 0;
  int conv_taps = 0;
  bool conv_bias = false;
  bool bias = false;  // Of both linear layers.
  float step_min = 0, step_max = std::numeric_limits<float>::infinity();
  enum Gate : uint8_t {
    kBeforeNorm,  // norm(y silu(z))
    kAfterNorm,   // norm(y) silu(z)
    kNoNorm,      // y silu(z)
  } gate = kBeforeNorm;
  int norm_groups = 1;  // Of channels, each with a norm of its own.
  float norm_eps = 1e-5f;
  // Multiply what the first linear layer gives: z, x, B, C, steps.
  std::array<float, 5> factors = {1, 1, 1, 1, 1};

  int inner() const { return heads * head_dim; }
  int channels() const { return inner() + 2 * groups * state_dim; }  // Of the convolution.
  int projected() const { return inner() + channels() + heads; }
};

std::string text(const Mamba2& m);               // Its part of a line of describe().
Result<void> check(const Mamba2& m, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Mamba2&) { return nullptr; }

}  // namespace weir::model
