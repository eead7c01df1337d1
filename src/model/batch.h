// Batch: the flat inputs of one forward pass. Plain views; the engine owns the arrays and keeps
// them until the pass has ended.
#pragma once

#include <cstdint>
#include <span>

#include "kv/memory_view.h"

namespace weir::model {

// Consecutive tokens of one sequence within a batch. No two slices are of one sequence: what layers
// keep of it changes from token to token, in order.
struct BatchSlice {
  int32_t row_begin = 0;  // Index of its first token in Batch::tokens.
  int32_t rows = 0;
  int32_t first_position = 0;  // Position of its first token in the sequence.
  // Tokens from here on were generated. Length-dependent rope (decision 20) takes
  // max(prompt_length, p + 1) as the length at p.
  int32_t prompt_length = 0;
  kv::MemoryView memory;  // The sequence's, covering all positions of the slice.
  // Tells sequences apart from batch to batch; below ssd::StoreOptions::sequences_max.
  int32_t sequence = 0;
};

// Consecutive rows of a batch whose hidden states are wanted.
struct HiddenRows {
  int32_t row_begin = 0;
  int32_t rows = 0;
};

struct Batch {
  // Token ids; a negative entry t stands for the token that an earlier step samples into
  // sampled[-t - 1] (decision 19).
  std::span<const int32_t> tokens;
  const int32_t* sampled = nullptr;
  std::span<const BatchSlice> slices;    // Ascending and contiguous in rows.
  std::span<const int32_t> sample_rows;  // Rows whose logits are wanted, ascending.
  // Ascending; no row is in two of them, or in `sample_rows`.
  std::span<const HiddenRows> hidden_rows = {};

  // The first row of a prompt, where all generated tokens come before (Model::prompts_differ()).
  int32_t prompt_begin() const {
    for (const BatchSlice& slice : slices)
      if (slice.first_position < slice.prompt_length) return slice.row_begin;
    return static_cast<int32_t>(tokens.size());
  }
};

}  // namespace weir::model
