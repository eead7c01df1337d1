// Products of many rows with weights: how their blocks are shared out.
//
// Threads: as Pass; called by every member with the same arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "encoder/pass.h"
#include "kernels/pair_ops.h"
#include "model/linear.h"

namespace weir::encoder {

// A block of a product: so many rows by so many columns.
struct BlockShape {
  int32_t rows = 0, columns = 0;

  constexpr int64_t numbers() const { return int64_t{rows} * columns; }
};
// Of float32, whose kernel goes over all rows for a few columns: rows that lie beside each other in
// the second-level cache (128 of 1,152 numbers: 0.6 MB). Of bf16, whose kernels, of pairs and of
// tiles, lay columns out first, for as many rows as it takes to make that cheap: 256 rows are as
// large.
inline constexpr BlockShape kFloatBlock = {.rows = 128, .columns = 256};
inline constexpr BlockShape kBf16Block = {.rows = 256, .columns = 128};
// Parts of rows begin where blocks do.
static_assert(kBf16Block.columns % kernels::kBf16Step == 0 &&
              kBf16Block.columns % kernels::kPairStep == 0 && kFloatBlock.columns % 128 == 0);
static_assert(kFloatBlock.numbers() == kBf16Block.numbers(), "a block's memory holds either");

// What a block of a product has given, bias included: columns [begin, end) of rows [row, row +
// rows).
struct Block {
  size_t weight = 0;  // Which one's.
  int32_t row = 0, rows = 0;
  int32_t begin = 0, end = 0;
  float* y = nullptr;  // From `row` and `begin` on,
  int32_t stride = 0;  // and from a row to the next.

  float* row_of(int32_t r) const { return y + int64_t{r} * stride; }
  int32_t columns() const { return end - begin; }
};

// Rows of activations, as floats and, where weights want them, in other forms. All of them are in
// the arithmetic of prompts: they are many.
struct Input {
  const float* x = nullptr;  // [rows, k]
  const model::ActivationForms* forms = nullptr;
  kernels::PairRows pairs{};  // Where there are some, weights meet these.
  int32_t first = 0;          // Which of them is the product's first row.

  BlockShape shape(const model::Linear& weight) const {
    return pairs.x != nullptr || weight.bf16_prompts ? kBf16Block : kFloatBlock;
  }
  // Rows from `row` on times some columns of a weight.
  void multiply(const Pass& pass, const model::Linear& weight, int32_t row,
                const kernels::GemmRange& range) const {
    if (pairs.x == nullptr) {
      const model::Activations in = {
          .x = x, .forms = forms, .prompt_begin = 0, .first_row = first + row};
      model::multiply(pass.ops, weight, in, range, pass.scratch());
    } else {
      kernels::PairRows rows = pairs;
      rows.x += (first + row) * rows.stride;
      pass.pairs.gemm(weight.floats, rows, range, pass.scratch());
    }
    model::add_bias(pass.ops, weight, range);
  }
};

// Calls fn(block) for each block of x times each of the weights, which read the same rows.
template <class F>
void for_product(const Pass& pass, std::span<const model::Linear* const> weights, const Input& in,
                 int32_t rows, float* memory, F&& fn) {
  const BlockShape shape = in.shape(*weights.front());
  const auto blocks_of = [&](const model::Linear& weight) {
    return (weight.n + shape.columns - 1) / shape.columns;
  };
  int64_t columns = 0;
  for (const model::Linear* weight : weights) columns += blocks_of(*weight);
  const int64_t row_blocks = (rows + shape.rows - 1) / shape.rows;
  const int64_t work = shape.numbers() * weights.front()->k;
  claim_blocks(pass, columns * row_blocks, work, [&](int64_t claim) {
    Block block = {.y = memory, .stride = shape.columns};
    block.row = static_cast<int32_t>(claim / columns) * shape.rows;
    block.rows = std::min(shape.rows, rows - block.row);
    auto column = static_cast<int32_t>(claim % columns);
    while (column >= blocks_of(*weights[block.weight]))
      column -= blocks_of(*weights[block.weight++]);
    const model::Linear& weight = *weights[block.weight];
    block.begin = column * shape.columns;
    block.end = std::min(block.begin + shape.columns, weight.n);
    in.multiply(pass, weight, block.row,
                {.rows = block.rows,
                 .begin = block.begin,
                 .end = block.end,
                 .y = memory - block.begin,
                 .y_stride = shape.columns});
    fn(block);
  });
}

}  // namespace weir::encoder
