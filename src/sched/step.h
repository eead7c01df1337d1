// Step: what one forward pass computes, as slices of sequences; and the limits of all steps.
//
// Threads: the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sched/sequence.h"

namespace weir::sched {

struct Limits {
  int32_t step_tokens_max = 512;
  int32_t running_max = 64;
  int32_t queue_max = 1024;  // Sequences waiting or running.
  // From this position on keys and values of a prompt's token differ from those of the same token
  // generated (Model::prompts_differ_from()): memory is shared only between tokens of one kind, and
  // a slice has only tokens of prompts, or generated ones.
  std::optional<int32_t> prompts_differ_from{};
  int32_t slab_tokens_max = 0;  // 0: prompts go into steps.
  // Drafts that are in steps, or were right and are still to be taken by states.
  int32_t draft_rows_max = std::numeric_limits<int32_t>::max();
  // Where prompts have pictures: which of their tokens see both ways, and are computed in one step
  // therefore; and of such a step all rows at most, if those may be more than of others.
  model::BothWays both_ways = model::BothWays::kNone;
  int32_t span_rows_max = 0;
  int32_t adapters_max = 1;     // Different ones that running sequences may have.

  int32_t rows_max() const { return std::max(step_tokens_max, span_rows_max); }  // Of any step.
};

// The tokens [first, first + count) of one sequence, run together in one forward pass.
struct Slice {
  Sequence* seq = nullptr;
  int32_t first = 0;
  int32_t count = 0;
  bool sample = false;  // The slice ends at the last token: what is wanted of it comes with it.
  // Its last tokens are drafts (Sequence::drafts): `sample` is of each of them as well.
  int32_t drafts = 0;
  // By how much the slice may stand further on, as drafts of the step before are taken.
  int32_t late = 0;
  int32_t replays = 0;  // As model::BatchSlice has it.

  // The end of what it may be.
  int32_t end() const { return first + late + count; }
};

// Tokens of running sequences, one each but where a grammar has forced some or there are drafts;
// then slices to prefill. Where the arithmetic of prompts differs, slices of generated tokens come
// before those of prompts.
struct Step {
  std::vector<Slice> slices;
  int32_t token_count = 0;
  int32_t prefill_tokens = 0;
  int32_t decode_slices = 0;     // The first ones.
  int32_t generated_slices = 0;  // The first ones, where the arithmetic of prompts differs.

  void clear() {
    slices.clear();
    token_count = prefill_tokens = decode_slices = generated_slices = 0;
  }
};

}  // namespace weir::sched
