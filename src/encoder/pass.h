// Pass: one stage as one member of the team sees it, and how its work is shared out.
//
// A stage is a sequence of phases. Within a phase members claim blocks until none is left; a
// barrier ends it. What is computed for a row depends on its view alone, not on what else is
// claimed. A unit has some of the claims (unit.h), so what a stage's run() does outside of them is
// done again in each of its units.
//
// Threads: each member has its own Pass; what it points to is shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/thread_team.h"
#include "encoder/unit.h"
#include "encoder/view.h"
#include "encoder/workspace.h"
#include "kernels/ops.h"
#include "kernels/pair_ops.h"
#include "kernels/span_ops.h"
#include "model/weight_map.h"

namespace weir::encoder {

struct Pass {
  const kernels::Ops& ops;
  const kernels::PairOps& pairs;
  const kernels::SpanOps& spans;
  ThreadTeam& team;
  const Workspace& ws;
  std::span<const View> views;  // As the stage finds them,
  std::span<const View> after;  // and as it leaves them.
  // The rows [.., width of the stage's input], and where a stage that gives others puts them.
  float* rows = nullptr;
  float* next = nullptr;
  int32_t width = 0;  // Numbers of a row, as the stage finds or leaves it: the more of both.
  int member = 0;
  Unit& unit;  // Its own.

  int32_t count() const { return views.empty() ? 0 : views.back().row_end(); }
  int32_t count_after() const { return after.empty() ? 0 : after.back().row_end(); }
  void barrier() const {
    if (unit.take_claimed()) team.barrier(member);
  }
  void* scratch() const { return ws.kernel_scratch(member); }
};

// Calls fn(block) for each of `count` blocks of the unit that this member claims, in ascending
// order. `work`: multiply-adds of each, at most.
template <class F>
void claim_blocks(const Pass& pass, int64_t count, int64_t work, F&& fn) {
  const Unit::Claims claims = pass.unit.next_phase(count, work);
  if (claims.empty()) return;
  for (int64_t block = claims.begin + pass.team.claim(); block < claims.end;
       block = claims.begin + pass.team.claim())
    fn(block);
}

// What a number of a row takes that is normed, converted or moved, in multiply-adds of products: it
// is read from memory and written there, in about a nanosecond, in which a core multiplies so many
// pairs of bf16.
inline constexpr int64_t kWorkOfNumber = 64;

// Calls fn(begin, end) for ranges of `rows` rows.
template <class F>
void claim_rows(const Pass& pass, int32_t rows, F&& fn) {
  // A norm of so many rows takes far longer than a claim, and far less than a phase.
  constexpr int32_t kRows = 16;
  const int64_t work = kRows * int64_t{pass.width} * kWorkOfNumber;
  claim_blocks(pass, (rows + kRows - 1) / kRows, work, [&](int64_t block) {
    const auto begin = static_cast<int32_t>(block) * kRows;
    fn(begin, std::min(begin + kRows, rows));
  });
}

// The view that a row is of.
inline const View& view_of(std::span<const View> views, int32_t row) {
  return *std::ranges::upper_bound(views, row, {}, &View::row_end);
}

inline void normalise(const kernels::Ops& ops, const model::NormWeights& norm, const float* x,
                      int32_t n, float* y) {
  if (norm.kind == model::Norm::kLayer)
    ops.layer_norm(x, norm.weight, norm.bias, norm.eps, n, y);
  else
    ops.rms_norm(x, norm.weight, norm.eps, n, y);
}

inline void keep_within(float limit, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -limit), limit);
}

// The norm of what Stage::limit makes of x.
inline void normalise(const kernels::Ops& ops, const model::NormWeights& norm, float limit,
                      const float* x, int32_t n, float* y) {
  if (limit > 0) {
    if (x != y) std::copy_n(x, n, y);
    keep_within(limit, n, y);
    x = y;
  }
  normalise(ops, norm, x, n, y);
}

}  // namespace weir::encoder
