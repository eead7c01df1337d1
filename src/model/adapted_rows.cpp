#include "model/adapted_rows.h"

#include "base/check.h"

namespace weir::model {

void AdaptedRows::plan(const Batch& batch) {
  group_count = 0;
  int32_t used = 0;
  for (const BatchSlice& first : batch.slices) {
    const auto known = std::span(groups).first(static_cast<size_t>(group_count));
    bool has_group = first.adapter == nullptr;
    for (const Group& group : known) has_group |= group.adapter == first.adapter;
    if (has_group) continue;
    CHECK(group_count < kAdaptersInPass);
    const int32_t begin = used;
    for (const BatchSlice& slice : batch.slices) {
      if (slice.adapter != first.adapter) continue;
      for (int32_t row = slice.row_begin; row < slice.row_begin + slice.rows; ++row) {
        rows[used] = row;
        place[row] = used++;
      }
    }
    groups[static_cast<size_t>(group_count++)] = {
        .adapter = first.adapter,
        .rows = {rows + begin, static_cast<size_t>(used - begin)},
        .place = begin};
  }
}

}  // namespace weir::model
