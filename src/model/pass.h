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
#include "model/model.h"
#include "model/workspace.h"
#include "ssd/expert_store.h"

namespace weir::model {

// Rows [begin, end) of a step, never a part of a slice.
struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
  int32_t count() const { return end - begin; }
};

struct Pass {
  const Batch& batch;
  const kv::KvCache& kv;
  const kernels::Ops& ops;
  ThreadTeam& team;
  Workspace& ws;
  RowSink& sink;
  // The leader's, where experts are streamed: it looks after the disk between its claims.
  ssd::ExpertStore* reads = nullptr;
  int member = 0;
  // Rows from here on are tokens of prompts, where those are computed in other arithmetic.
  int32_t prompt_begin = kNoPrompts;
  // Each member computes the inputs of sublayers for itself (Workspace::kOwnRows).
  bool own_inputs = false;
  // Some slice has an adapter.
  bool adapted = false;
  // Some rows have levels (VectorRows).
  bool has_levels = false;

  int32_t rows() const { return batch.rows(); }
  RowRange all_rows() const { return {0, rows()}; }
  void see_to_reads() const {
    if (reads != nullptr) reads->pump();
  }
  // The row is a generated token's, not a prompt's.
  bool generated(int32_t row) const {
    const BatchSlice& slice = batch.slices[static_cast<size_t>(ws.slice[row])];
    return ws.position[row] >= slice.prompt_length;
  }
  // The pages of a row's sequence in a layer of the cache, by block.
  const int32_t* pages_of(int32_t memory, int32_t row) const {
    const BatchSlice& slice = batch.slices[static_cast<size_t>(ws.slice[row])];
    return slice.memory.pages(kv.group_of(memory));
  }
  // The page in which a layer of the cache keeps what a row leaves there.
  int32_t page_of(int32_t memory, int32_t row) const {
    return pages_of(memory, row)[ws.position[row] / kernels::kPageTokens];
  }
  // The sequence's hot pages, by block (kv/layout.h).
  const int32_t* hot_pages_of(const BatchSlice& slice) const {
    return slice.memory.pages(kv.hot_group());
  }
  // The page has it already, and others read it: the row is computed for a state's sake.
  bool kept(int32_t row) const {
    const BatchSlice& slice = batch.slices[static_cast<size_t>(ws.slice[row])];
    return ws.position[row] < slice.memory.kept;
  }
  void* scratch() const { return ws.scratch(member); }
  // The input of the sublayer at hand, [rows, hidden], and its other forms.
  float* normed() const {
    return own_inputs ? ws.own_normed[static_cast<size_t>(member)] : ws.normed;
  }
  const ActivationForms& normed_forms() const {
    return own_inputs ? ws.own_forms[static_cast<size_t>(member)] : ws.normed_forms;
  }
};

// What the adapters of the rows' slices change of such a product, and what of them is fetched while
// the product itself is computed (adapted_product.cpp).
void fetch_adapters(const Pass& pass, const Linear& weight, const kernels::GemmRange& range);
void apply_adapters(const Pass& pass, const Linear& weight, const Activations& in,
                    const kernels::GemmRange& range);

// Columns of a product for some of the pass's rows (model/linear.h), without bias. It knows the
// rows' slices, and so is the one place where their adapters change it.
inline void multiply(const Pass& pass, const Linear& weight, const Activations& in,
                     const kernels::GemmRange& range) {
  const bool adapted = pass.adapted && weight.target >= 0;
  if (adapted) fetch_adapters(pass, weight, range);
  multiply(pass.ops, weight, in, range, pass.scratch());
  if (adapted) apply_adapters(pass, weight, in, range);
}

// Calls fn(block) for each block that this member claims.
template <class F>
void claim_blocks(const Pass& pass, int64_t count, F&& fn) {
  for (int64_t block = pass.team.claim(); block < count; block = pass.team.claim()) {
    fn(block);
    pass.see_to_reads();
  }
}

// Calls fn(begin, end) for ranges of `within`.
template <class F>
void claim_rows(const Pass& pass, const RowRange& within, F&& fn) {
  const int32_t rows = within.count();
  // About four claims a member; at most 16 rows, so that a member that loses its core for a moment
  // keeps the others waiting for little.
  const int32_t size = std::clamp(rows / (4 * pass.team.members()), 1, 16);
  claim_blocks(pass, (rows + size - 1) / size, [&](int64_t block) {
    const int32_t begin = within.begin + static_cast<int32_t>(block) * size;
    fn(begin, std::min(begin + size, within.end));
  });
}

// Calls fn(block, next) for each of `count` blocks that this member claims from shares: `next` is
// what it most likely claims then, or -1.
template <class F>
void claim_in_shares(const Pass& pass, int64_t count, F&& fn) {
  const int64_t members = pass.team.members();
  const auto most = static_cast<int32_t>((count + members - 1) / members);
  int32_t share = 0, block = 0;
  while (pass.team.claim_share(pass.member, most, share, block)) {
    const int64_t at = count * share / members + block, end = count * (share + 1) / members;
    if (at < end) fn(at, at + 1 < end ? at + 1 : -1);
    pass.see_to_reads();
  }
}

// Columns of weights a claim covers, when `columns` in all are shared out, in multiples of `unit`,
// `rows` rows being multiplied by each. A few rows read each weight once: about 64 KiB of it, since
// it is fetched while the claim before is computed (NextWeights), to be in L2 and not yet driven
// out when its turn comes. Many rows: about eight claims a member, but at least 64 columns, below
// which a claim costs more than it balances, and at most 512, whose results for 512 rows fit the L2
// cache; at least 128 for 128 rows and more, which pass through the caches once for each claim.
inline int32_t column_block(const Pass& pass, int32_t rows, int64_t columns, int64_t column_bytes,
                            int32_t unit) {
  constexpr int64_t kFetchedBytes = 64 << 10;
  const int64_t least = rows <= 16 ? unit : rows < 128 ? 64 : 128;
  const int64_t share =
      rows <= 16 ? kFetchedBytes / column_bytes : columns / (8 * pass.team.members());
  return static_cast<int32_t>(
      std::max((std::min<int64_t>(share, 512) + unit / 2) / unit, (least + unit - 1) / unit) *
      unit);
}

// Columns [begin, end) of one of a phase's weights; none if they are equal.
struct ColumnRange {
  size_t weight = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

// How the columns of a phase's weights, side by side, are shared out. Each member's share is cut
// into blocks, then, where members begin to wait for one another, about one such block into
// quarters: the largest piece that a member can still hold when the others find nothing left.
// Everything is counted in units of columns that belong together.
template <size_t kCount>
class ColumnShares {
 public:
  using Weights = std::array<const Linear*, kCount>;

  ColumnShares(const Pass& pass, const Weights& weights, int32_t multiple)
      : weights_(weights), members_(pass.team.members()) {
    // Many rows go through tiles of two 16-column blocks.
    unit_ = std::max(multiple, pass.rows() >= 16 ? 32 : 16);
    int64_t columns = 0;
    for (size_t i = 0; i < kCount; ++i) {
      first_[i] = units_;
      units_ += (weights[i]->n + unit_ - 1) / unit_;
      columns += weights[i]->n;
    }
    size_ = column_block(pass, pass.rows(), columns, weights[0]->column_bytes(), unit_) / unit_;
    quarter_ = std::max(size_ / 4, 1);
    const int32_t most = (units_ + members_ - 1) / members_;
    whole_ = std::max(most - size_, 0) / size_;
    blocks_ = whole_ + (most - whole_ * size_ + quarter_ - 1) / quarter_;
  }

  int32_t blocks() const { return blocks_; }  // Of the largest share.

  // The columns of a block, weight by weight; after them empty ranges.
  std::array<ColumnRange, kCount> ranges(int32_t share, int32_t block) const {
    const int32_t begin =
        edge(share) +
        (block < whole_ ? block * size_ : whole_ * size_ + (block - whole_) * quarter_);
    const int32_t end = std::min(begin + (block < whole_ ? size_ : quarter_), edge(share + 1));
    std::array<ColumnRange, kCount> found;
    size_t count = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const ColumnRange range = {i, std::max((begin - first_[i]) * unit_, 0),
                                 std::min((end - first_[i]) * unit_, weights_[i]->n)};
      if (range.begin < range.end) found[count++] = range;
    }
    return found;
  }
  // What a member that comes to this block multiplies by first.
  kernels::NextWeights first_weights(int32_t share, int32_t block) const {
    return block < blocks_ ? weights_of(ranges(share, block)[0]) : kernels::NextWeights{};
  }
  kernels::NextWeights weights_of(const ColumnRange& range) const {
    return next_weights(*weights_[range.weight], range.begin, range.end);
  }

 private:
  int32_t edge(int64_t share) const { return static_cast<int32_t>(units_ * share / members_); }

  Weights weights_;
  std::array<int32_t, kCount> first_{};  // Unit where each weight begins.
  int32_t members_;
  int32_t unit_ = 0;  // Columns.
  int32_t units_ = 0;
  int32_t size_ = 0;     // Units of a block.
  int32_t quarter_ = 0;  // Units of a block after the first `whole_`.
  int32_t whole_ = 0;
  int32_t blocks_ = 0;
};

// Calls fn(range, next) for the ranges of columns that this member claims: `next` is what it most
// likely multiplies by then, `after` once its share is done.
template <size_t kCount, class F>
void claim_columns(const Pass& pass, const ColumnShares<kCount>& shares,
                   const kernels::NextWeights& after, F&& fn) {
  int32_t share = 0, block = 0;
  while (pass.team.claim_share(pass.member, shares.blocks(), share, block)) {
    kernels::NextWeights later = shares.first_weights(share, block + 1);
    if (later.words == nullptr) later = after;
    pass.see_to_reads();
    const auto ranges = shares.ranges(share, block);
    for (size_t i = 0; i < kCount && ranges[i].begin < ranges[i].end; ++i) {
      const bool last = i + 1 == kCount || ranges[i + 1].begin == ranges[i + 1].end;
      fn(ranges[i], last ? later : shares.weights_of(ranges[i + 1]));
    }
  }
}

// Calls fn(begin, end) for blocks of at most `size` columns.
template <class F>
void for_column_blocks(const ColumnRange& columns, int32_t size, F&& fn) {
  for (int32_t begin = columns.begin; begin < columns.end; begin += size)
    fn(begin, std::min(begin + size, columns.end));
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
