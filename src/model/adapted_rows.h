// AdaptedRows: which rows of a pass have which adapter, and what the inner halves of their products
// have given (adapted_product.h). A part of the workspace.
//
// Threads: plan() is the leader's, before a barrier; a member writes the `sums` that it claims, in a
// phase before the one that reads them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/batch.h"

namespace weir::model {

// Adapters that rows of one pass may have: eight times what vLLM's --max-loras is set to where many
// are served.
inline constexpr int32_t kAdaptersInPass = 64;
// Weights that share an input, and a phase.
inline constexpr int32_t kPreparedWeights = 4;

struct AdaptedRows {
  struct Group {
    const Adapter* adapter = nullptr;
    std::span<const int32_t> rows;  // Of the pass, ascending.
    int32_t place = 0;              // Of the first one in `sums`.
  };

  int32_t* rows = nullptr;   // [rows]: those of the groups, one group after another.
  int32_t* place = nullptr;  // [rows]: where a row of the pass is among them.
  float* sums = nullptr;     // [rows, stride()]: by place, of each weight rank_max numbers.
  int32_t rank_max = 0;
  std::array<Group, kAdaptersInPass> groups{};
  int32_t group_count = 0;

  int64_t stride() const { return int64_t{kPreparedWeights} * rank_max; }
  float* sum(int32_t row_place, int32_t weight) const {
    return sums + row_place * stride() + int64_t{weight} * rank_max;
  }

  // REQUIRES: at most kAdaptersInPass adapters in the batch.
  void plan(const Batch& batch);
};

}  // namespace weir::model
