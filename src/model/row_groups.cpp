#include "model/row_groups.h"

#include <algorithm>
#include <utility>

#include "ssd/expert_store.h"

namespace weir::model {

void RowGroups::plan(std::span<const BatchSlice> slices, int32_t generated,
                     const ssd::ExpertStore& store) {
  const auto cost = std::exchange(projected_, {}) / std::max(std::exchange(projections_, 0), 1);
  cut_ = 0;
  if (generated < 2 || !store.wants_early_reads(cost)) return;
  // Half of the generated rows, or a little more: rows of a slice attend to each other.
  for (const BatchSlice& slice : slices) {
    if (slice.first_position < slice.prompt_length) break;
    cut_ += slice.rows;
    if (2 * cut_ >= generated) break;
  }
  const BatchSlice& last = slices.back();
  if (cut_ == last.row_begin + last.rows) cut_ = 0;  // There is no second one.
}

}  // namespace weir::model
