#include "model/adapted_product.h"

#include <algorithm>

#include "kernels/quant_layout.h"
#include "model/adapter.h"

namespace weir::model {

namespace {

constexpr int64_t kLine = 64;
// Of so many rows, products wait for memory; of more, for the multipliers.
constexpr int32_t kFewRows = 16;

// `count` runs of `bytes` bytes, `stride` bytes apart, into the second-level cache, a line of each in
// turn: memory gives more to a core that reads several pages at a time.
void fetch(const void* memory, int64_t bytes, int64_t count = 1, int64_t stride = 0) {
  const auto* begin = static_cast<const std::byte*>(memory);
  for (int64_t at = 0; at < bytes; at += kLine)
    for (int64_t i = 0; i < count; ++i) __builtin_prefetch(begin + i * stride + at, 0, 2);
}

// Ranks of a claim: what a tile of few rows takes at once (4), or of prompts (16).
constexpr int32_t kFewRanks = 4, kManyRanks = 16;

// The row of the pass that row m of a product is.
int32_t pass_row(const Activations& in, const kernels::GemmRange& range, int32_t m) {
  if (in.pass_rows != nullptr) return in.pass_rows[m];
  return range.index != nullptr ? range.index[m] : in.first_row + m;
}

const BatchSlice& slice_of(const Pass& pass, int32_t row) {
  return pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])];
}

// Rows [first, first + count) of a range, and of the activations that they are computed from.
struct Part {
  Activations in;
  kernels::GemmRange range;
};

Part part_of(const Activations& in, const kernels::GemmRange& range, int32_t first,
             int32_t count) {
  Part part{.in = in, .range = range};
  part.range.rows = count;
  part.range.y += first * range.y_stride;
  part.range.next = {};
  if (range.index != nullptr)
    part.range.index += first;
  else
    part.in.first_row += first;
  if (in.pass_rows != nullptr) part.in.pass_rows += first;
  return part;
}

// Where the scratch has room for sums, after what kernels use.
float* own_sums(const Pass& pass) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(pass.scratch()) + kernels::kScratchBytes);
}

void add_outer(const Pass& pass, const AdaptedMatrix& matrix, const Part& part) {
  const AdaptedRows& adapted = pass.ws.adapted;
  kernels::GemmRange range = part.range;
  range.index = nullptr;
  if (part.in.prepared >= 0) {
    // Of neighbours with one adapter the sums are neighbours too.
    const int32_t place = adapted.place[pass_row(part.in, part.range, 0)];
    return pass.ops.add_low_rank(matrix.outer, adapted.sum(place, part.in.prepared),
                                 adapted.stride(), range);
  }
  const int32_t rank = matrix.outer.rank;
  float* const sums = own_sums(pass);
  const auto most = static_cast<int32_t>(kOrderedBytes / (rank * int64_t{sizeof(float)}));
  for (int32_t first = 0; first < range.rows; first += most) {
    const int32_t count = std::min(most, range.rows - first);
    const Part some = part_of(part.in, part.range, first, count);
    multiply(pass.ops, matrix.inner, some.in,
             {.index = some.range.index, .rows = count, .end = rank, .y = sums, .y_stride = rank},
             pass.scratch());
    for (int32_t m = 0; m < count; ++m)
      pass.ops.scale(
          matrix.scale * slice_of(pass, pass_row(some.in, some.range, m)).adapter_scale, rank,
          sums + int64_t{m} * rank);
    range.rows = count;
    range.y = some.range.y;
    pass.ops.add_low_rank(matrix.outer, sums, rank, range);
  }
}

// Rows of one adapter.
void apply(const Pass& pass, const AdaptedMatrix& matrix, const Part& part) {
  const kernels::GemmRange& range = part.range;
  if (matrix.whole.n > 0) multiply(pass.ops, matrix.whole, part.in, range, pass.scratch());
  if (matrix.low_rank()) add_outer(pass, matrix, part);
  for (int32_t m = 0; m < range.rows; ++m) {
    float* const y = range.y + m * range.y_stride + range.begin;
    const int32_t columns = range.end - range.begin;
    if (matrix.lengths != nullptr) pass.ops.product(matrix.lengths + range.begin, columns, y);
    if (matrix.bias != nullptr) pass.ops.add_scaled(matrix.bias + range.begin, 1, columns, y);
  }
}

// Claims of the inner halves: the ranks of an adapter's matrix for one weight, in blocks.
struct InnerBlocks {
  const AdaptedMatrix* matrix = nullptr;
  int32_t count = 0;
};

InnerBlocks blocks_of(const AdaptedRows::Group& group, const Linear& weight, int32_t ranks) {
  if (weight.target < 0) return {};
  const AdaptedMatrix* matrix = group.adapter->find(weight.target);
  if (matrix == nullptr || !matrix->low_rank()) return {};
  return {.matrix = matrix, .count = (matrix->outer.rank + ranks - 1) / ranks};
}

// Ranks from `first` on, for the rows of a group that lie in `rows`.
void compute_inner(const Pass& pass, const AdaptedRows::Group& group, const AdaptedMatrix& matrix,
                   int32_t weight, int32_t first, int32_t ranks, const Activations& in,
                   const RowRange& rows) {
  const auto begin = std::ranges::lower_bound(group.rows, rows.begin);
  const auto end = std::ranges::lower_bound(group.rows, rows.end);
  if (begin == end) return;
  const std::span some(begin, end);
  const auto place = group.place + static_cast<int32_t>(begin - group.rows.begin());
  Linear part = matrix.inner;
  part.n = part.floats.n = std::min(ranks, matrix.outer.rank - first);
  part.floats.rows =
      static_cast<const std::byte*>(part.floats.rows) +
      int64_t{first} * part.k * kernels::float_type_bytes(part.floats.type);
  if (some.size() <= kFewRows) {
    const int64_t row_bytes = int64_t{part.k} * kernels::float_type_bytes(part.floats.type);
    fetch(part.floats.rows, row_bytes, part.n, row_bytes);
  }
  const AdaptedRows& adapted = pass.ws.adapted;
  float* const sums = adapted.sum(place, weight) + first;
  multiply(pass.ops, part, in,
           {.index = some.data(),
            .rows = static_cast<int32_t>(some.size()),
            .end = part.n,
            .y = sums,
            .y_stride = adapted.stride()},
           pass.scratch());
  for (size_t m = 0; m < some.size(); ++m)
    pass.ops.scale(matrix.scale * slice_of(pass, some[m]).adapter_scale, part.n,
                   sums + static_cast<int64_t>(m) * adapted.stride());
}

}  // namespace

// Each adapter's columns are a short run of their own, which no prefetcher of the processor sees
// coming.
void fetch_adapters(const Pass& pass, const Linear& weight, const kernels::GemmRange& range) {
  if (range.rows > kFewRows) return;
  const AdaptedRows& adapted = pass.ws.adapted;
  for (const AdaptedRows::Group& group :
       std::span(adapted.groups).first(static_cast<size_t>(adapted.group_count))) {
    const AdaptedMatrix* matrix = group.adapter->find(weight.target);
    if (matrix == nullptr || !matrix->low_rank()) continue;
    const int64_t column_bytes =
        int64_t{matrix->outer.rank} * kernels::float_type_bytes(matrix->outer.type);
    fetch(static_cast<const std::byte*>(matrix->outer.blocks) + range.begin * column_bytes,
          (range.end - range.begin) * column_bytes);
  }
}

void apply_adapters(const Pass& pass, const Linear& weight, const Activations& in,
                    const kernels::GemmRange& range) {
  const auto adapter_of = [&](int32_t m) {
    return slice_of(pass, pass_row(in, range, m)).adapter;
  };
  for (int32_t m = 0, end = 0; m < range.rows; m = end) {
    const Adapter* adapter = adapter_of(m);
    for (end = m + 1; end < range.rows && adapter_of(end) == adapter;) ++end;
    if (adapter == nullptr) continue;
    const AdaptedMatrix* matrix = adapter->find(weight.target);
    if (matrix != nullptr) apply(pass, *matrix, part_of(in, range, m, end - m));
  }
}

void prepare_adapters(const Pass& pass, std::span<const Linear* const> weights,
                      const Activations& in, const RowRange& rows) {
  if (!pass.adapted) return;
  const trace::Scope scope(trace::Kind::kKernel, "adapters");
  const AdaptedRows& adapted = pass.ws.adapted;
  const std::span groups =
      std::span(adapted.groups).first(static_cast<size_t>(adapted.group_count));
  const int32_t ranks = in.prompt_begin < rows.end ? kManyRanks : kFewRanks;
  int64_t total = 0;
  for (const AdaptedRows::Group& group : groups)
    for (const Linear* weight : weights) total += blocks_of(group, *weight, ranks).count;
  if (total == 0) return;
  claim_blocks(pass, total, [&](int64_t block) {
    for (const AdaptedRows::Group& group : groups)
      for (size_t w = 0; w < weights.size(); ++w) {
        const InnerBlocks blocks = blocks_of(group, *weights[w], ranks);
        if (block >= 0 && block < blocks.count)
          compute_inner(pass, group, *blocks.matrix, static_cast<int32_t>(w),
                        static_cast<int32_t>(block) * ranks, ranks, in, rows);
        block -= blocks.count;
      }
  });
  pass.team.barrier(pass.member);
}

void adapt_embedding(const Pass& pass, const Linear& table, int32_t row, int32_t token,
                     float* out) {
  const BatchSlice& slice = slice_of(pass, row);
  if (slice.adapter == nullptr || table.target < 0) return;
  const AdaptedMatrix* matrix = slice.adapter->find(table.target);
  if (matrix == nullptr) return;
  if (matrix->whole.n > 0) read_row(pass.ops, matrix->whole, token, out);
  if (!matrix->low_rank()) return;
  float* const sums = own_sums(pass);
  read_row(pass.ops, matrix->inner, token, sums);
  pass.ops.scale(matrix->scale * slice.adapter_scale, matrix->outer.rank, sums);
  pass.ops.add_low_rank(matrix->outer, sums, matrix->outer.rank,
                        {.rows = 1, .end = matrix->outer.n, .y = out, .y_stride = matrix->outer.n});
}

}  // namespace weir::model
