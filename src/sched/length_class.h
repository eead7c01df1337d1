// LengthClass says which prompts may share KV pages where rotary frequencies depend on the length
// (decision 20): there the length at position p is max(prompt length, p + 1), so the keys that lie
// in a page depend on the prompt it was computed for.
//
// Two prompts of one class have the same frequencies at every position, also in their outputs:
//   longrope  has two sets of factors, below and above its original context, so what matters is
//             whether the prompt is longer than that;
//   dynamic   is unscaled up to its original context and different at each length beyond, so
//             longer prompts agree only with those of the same length.
// Models without such layers have one class.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "model/spec.h"

namespace weir::sched {

class LengthClass {
 public:
  explicit LengthClass(const model::ModelSpec& spec);

  uint64_t of(int32_t prompt_length) const;

 private:
  int32_t dynamic_from_ = INT32_MAX;     // The shortest original context of a dynamic layer.
  std::vector<int32_t> switch_lengths_;  // Original contexts of longrope layers.
};

}  // namespace weir::sched
