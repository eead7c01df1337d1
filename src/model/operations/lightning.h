// Lightning: linear attention whose past fades at a fixed rate.
//
// Threads: plain data and free functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/ops.h"
#include "model/operations/rope.h"

namespace weir::model {

// Linear attention that keeps a state of [head_dim, head_dim] for each head (kernels::DecayRun),
// of queries, keys and values after an activation; what all heads give together is normalised and
// multiplied by the sigmoid of a gate.
struct Lightning {
  int num_heads = 0;
  int head_dim = 0;
  kernels::Act act = kernels::Act::kSilu;
  // Of each head: with each further token a token counts e^-rate as much. Usually a layer's own, so
  // that text() leaves them out.
  std::vector<float> rates{};
  float norm_eps = 1e-6f;
};

std::string text(const Lightning& l);               // Its part of a line of describe().
Result<void> check(const Lightning& l, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Lightning&) { return nullptr; }

}  // namespace weir::model
