// choose(): from a router's logits to the experts of a token and what each counts, by the styles
// that spec.h's Router has as data.
//
// Threads: a free function.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "model/spec.h"

namespace weir::model {

inline constexpr int kRouterGroupsMax = 64;  // Eight times the most published.

// How many floats choose() works in: at first the logits.
int32_t router_floats(const Router& router, int32_t experts);

// The top_k experts of a token, best first, the lower number first among equals, and their weights.
// `scores` are the logits of all experts, and are overwritten. A logit that is no number is never
// better than one that is. `selection_bias`: [experts], where the router has one, else null.
// `given`: where the router has a table of tokens, its row for this one, [top_k] different experts:
// these are the choice, in that order; else null. REQUIRES: what check_spec() promises; `scores`
// has room for router_floats().
void choose(const kernels::Ops& ops, const Router& router, int32_t experts, int32_t top_k,
            const float* selection_bias, const int32_t* given, float* scores, int32_t* choice,
            float* weight);

}  // namespace weir::model
