// RowGroups: whether the rows of a step go through attention in two groups, one after the other, so
// that the experts of the first are read from disk while the second computes.
//
// Threads: plan() and the times are the leader's; cut() may be read by all members after the
// barrier that follows.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "model/batch.h"

namespace weir::ssd {
class ExpertStore;
}

namespace weir::model {

class RowGroups {
 public:
  using Clock = std::chrono::steady_clock;

  // Before a step's first layer. `generated`: how many rows are generated tokens; those come first.
  void plan(std::span<const BatchSlice> slices, int32_t generated, const ssd::ExpertStore& store);
  // Rows before this one are the first group; 0: there is one group.
  int32_t cut() const { return cut_; }

  // How long o_proj takes, with its barrier: what a second group costs.
  static Clock::time_point now(bool measured) {
    return measured ? Clock::now() : Clock::time_point{};
  }
  void projected_since(Clock::time_point start) {
    projected_ += Clock::now() - start;
    ++projections_;
  }

 private:
  int32_t cut_ = 0;
  Clock::duration projected_{0};  // Of the step, so many times.
  int32_t projections_ = 0;
};

}  // namespace weir::model
