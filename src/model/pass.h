// Pass: one forward pass as one member of the team sees it, and the ways to share out work.
//
// A pass is a sequence of phases. Within a phase members claim blocks of rows or of columns until
// none is left; a barrier ends it. All members run the same code and agree on every block, so that
// nothing needs to be handed out.
//
// Threads: each member has its own Pass; what it points to is shared.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/thread_team.h"
#include "base/trace.h"
#include "kernels/ops.h"
#include "kv/kv_cache.h"
#include "model/batch.h"
#include "model/workspace.h"

namespace weir::model {

struct Pass {
  const Batch& batch;
  const kv::KvCache& kv;
  const kernels::Ops& ops;
  ThreadTeam& team;
  Workspace& ws;
  int member = 0;
  // Rows from here on are tokens of prompts, where those are computed in other arithmetic.
  int32_t prompt_begin = kNoPrompts;
  // Each member computes the inputs of sublayers for itself (Workspace::kOwnRows).
  bool own_inputs = false;

  int32_t rows() const { return static_cast<int32_t>(batch.tokens.size()); }
  void* scratch() const { return ws.scratch(member); }
  // The input of the sublayer at hand, [rows, hidden], and its other forms.
  float* normed() const {
    return own_inputs ? ws.own_normed[static_cast<size_t>(member)] : ws.normed;
  }
  const ActivationForms& normed_forms() const {
    return own_inputs ? ws.own_forms[static_cast<size_t>(member)] : ws.normed_forms;
  }
};

// Calls fn(block) for each block that this member claims.
template <class F>
void claim_blocks(const Pass& pass, int64_t count, F&& fn) {
  for (int64_t block = pass.team.claim(); block < count; block = pass.team.claim()) fn(block);
}

// Calls fn(begin, end) for ranges of [0, rows).
template <class F>
void claim_rows(const Pass& pass, int32_t rows, F&& fn) {
  // About four claims a member; at most 16 rows, so that a member that loses its core for a moment
  // keeps the others waiting for little.
  const int32_t size = std::clamp(rows / (4 * pass.team.members()), 1, 16);
  claim_blocks(pass, (rows + size - 1) / size, [&](int64_t block) {
    const auto begin = static_cast<int32_t>(block) * size;
    fn(begin, std::min(begin + size, rows));
  });
}

// Columns of weights a claim covers, when `columns` in all are shared out: about eight claims a
// member, but at least 64 columns, below which a claim costs more than it balances, and at most
// 512, whose results for 512 rows fit the L2 cache. At least 128 for many rows, which pass through
// the caches once for each claim. A multiple of `multiple`.
inline int32_t column_block(const Pass& pass, int64_t columns, int32_t multiple) {
  const int64_t share = columns / (8 * pass.team.members()) / multiple * multiple;
  const int32_t least = pass.rows() >= 128 ? 128 : 64;
  return static_cast<int32_t>(
      std::clamp<int64_t>(share, (least + multiple - 1) / multiple * multiple, 512));
}

// How one weight's columns are cut: blocks of `size`, then, where members begin to wait for one
// another, about one such block a member in quarters. The largest piece that somebody can still
// hold when the others find nothing left is then a quarter.
struct ColumnCut {
  int32_t width = 0;
  int32_t size = 0;
  int32_t whole = 0;    // Blocks of `size`.
  int32_t quarter = 0;  // Columns of a block behind them.

  int32_t blocks() const { return whole + (width - whole * size + quarter - 1) / quarter; }
  int32_t begin(int32_t block) const {
    return block < whole ? block * size : whole * size + (block - whole) * quarter;
  }
  int32_t end(int32_t block) const { return std::min(begin(block + 1), width); }
};

// `least`: columns below which a product is no longer efficient.
inline ColumnCut cut_columns(const Pass& pass, int32_t width, int32_t size, int32_t least) {
  const int32_t quarter = std::max(size / 4 / least * least, least);
  const int32_t end = std::max(0, width - pass.team.members() * size);
  return {.width = width, .size = size, .whole = end / size, .quarter = quarter};
}

// Calls fn(i, begin, end) for ranges of columns of several weights, widths[i] wide.
template <size_t kCount, class F>
void claim_columns(const Pass& pass, const std::array<int32_t, kCount>& widths, F&& fn,
                   int32_t multiple = 16) {
  int64_t columns = 0, blocks = 0;
  for (const int32_t width : widths) columns += width;
  const int32_t size = column_block(pass, columns, multiple);
  // One row reads its weights once, whatever the block; many rows go through the tiles of two
  // 16-column blocks.
  const int32_t least = std::max(multiple, pass.rows() > 16 ? 32 : 16);
  std::array<ColumnCut, kCount> cuts;
  for (size_t i = 0; i < kCount; ++i) {
    const bool last = i + 1 == kCount;
    cuts[i] = cut_columns(pass, widths[i], size, last ? least : size);
    blocks += cuts[i].blocks();
  }
  claim_blocks(pass, blocks, [&](int64_t block) {
    size_t i = 0;
    while (block >= cuts[i].blocks()) block -= cuts[i++].blocks();
    const auto at = static_cast<int32_t>(block);
    fn(i, cuts[i].begin(at), cuts[i].end(at));
  });
}

// Calls fn(begin, end) for blocks of at most `size` columns.
template <class F>
void for_column_blocks(int32_t begin, int32_t end, int32_t size, F&& fn) {
  for (; begin < end; begin += size) fn(begin, std::min(begin + size, end));
}

// A product's range whose result is the member's block buffer `which` (0 or 1), at most
// Workspace::kBlockColumns wide: as if the whole row were there, of which only these columns are.
inline kernels::GemmRange block_range(const Pass& pass, int which, int32_t rows, int32_t begin,
                                      int32_t end) {
  return {.rows = rows,
          .begin = begin,
          .end = end,
          .y = pass.ws.block(pass.member, which) - begin,
          .y_stride = Workspace::kBlockColumns};
}

}  // namespace weir::model
