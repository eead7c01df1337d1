// Products of many rows with weights: how their blocks are shared out.
//
// Threads: as Pass; called by every member with the same arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "encoder/pass.h"
#include "model/linear.h"

namespace weir::encoder {

// A block of a product: so many rows, whose floats lie beside each other in the second-level cache
// (128 rows of 1,152 numbers: 0.6 MB), by so many columns, which weigh about as much.
inline constexpr int32_t kBlockRows = 128;
inline constexpr int32_t kBlockColumns = 256;

// What a block of a product has given, bias included: columns [begin, end) of rows [row, row +
// rows).
struct Block {
  size_t weight = 0;  // Which one's.
  int32_t row = 0, rows = 0;
  int32_t begin = 0, end = 0;
  float* y = nullptr;  // Row r, column c at y + r * kBlockColumns + c, from `row` and `begin` on.

  float* row_of(int32_t r) const { return y + int64_t{r} * kBlockColumns; }
  int32_t columns() const { return end - begin; }
};

// Rows of activations, as floats and, where some weight wants them, in other forms. All of them are
// in the arithmetic of prompts: they are many.
struct Input {
  const float* x = nullptr;  // [rows, k]
  const model::ActivationForms* forms = nullptr;

  int32_t first = 0;  // Which of them is the product's first row.

  model::Activations activations(int32_t row) const {
    return {.x = x, .forms = forms, .prompt_begin = 0, .first_row = first + row};
  }
};

// Calls fn(block) for each block of x times each of the weights, which read the same rows.
template <class F>
void for_product(const Pass& pass, std::span<const model::Linear* const> weights, const Input& in,
                 int32_t rows, float* memory, F&& fn) {
  const auto blocks_of = [](const model::Linear& weight) {
    return (weight.n + kBlockColumns - 1) / kBlockColumns;
  };
  int64_t columns = 0;
  for (const model::Linear* weight : weights) columns += blocks_of(*weight);
  const int64_t row_blocks = (rows + kBlockRows - 1) / kBlockRows;
  claim_blocks(pass, columns * row_blocks, [&](int64_t claim) {
    Block block;
    block.row = static_cast<int32_t>(claim / columns) * kBlockRows;
    block.rows = std::min(kBlockRows, rows - block.row);
    auto column = static_cast<int32_t>(claim % columns);
    while (column >= blocks_of(*weights[block.weight]))
      column -= blocks_of(*weights[block.weight++]);
    const model::Linear& weight = *weights[block.weight];
    block.begin = column * kBlockColumns;
    block.end = std::min(block.begin + kBlockColumns, weight.n);
    block.y = memory;
    const kernels::GemmRange range = {.rows = block.rows,
                                      .begin = block.begin,
                                      .end = block.end,
                                      .y = memory - block.begin,
                                      .y_stride = kBlockColumns};
    model::multiply(pass.ops, weight, in.activations(block.row), range, pass.scratch());
    model::add_bias(pass.ops, weight, range);
    fn(block);
  });
}

}  // namespace weir::encoder
