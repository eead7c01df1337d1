// SpoiledPages: pages that a failed slice has written to, by group. What they hold is worthless.
//
// Threads: the engine thread.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kv/block.h"
#include "kv/page_memory.h"
#include "model/batch.h"

namespace weir::sched {

class SpoiledPages {
 public:
  explicit SpoiledPages(std::span<const kv::PageGroup> groups)
      : groups_(groups), pages_(groups.size()) {}

  // `late`: by how much the slice may have stood further on.
  void add(const model::BatchSlice& slice, int32_t late) {
    const int32_t first = slice.first_position / kv::kPageTokens;
    const int32_t end = kv::blocks_for(slice.first_position + late + slice.rows);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].hot) continue;  // No other sequence's.
      const int32_t* table = slice.memory.pages(static_cast<int32_t>(g));
      pages_[g].insert(pages_[g].end(), table + first, table + end);
    }
  }

  // True if position `next` of a sequence, or a later one, sees one of them. A sequence that has
  // taken a checkpoint of a failed slice holds the page of the block before it as well.
  bool seen_from(const kv::MemoryView& memory, int32_t next) const {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].hot) continue;
      const int32_t window = groups_[g].window;
      const int32_t* table = memory.pages(static_cast<int32_t>(g));
      const std::span seen(table + (window == 0 ? 0 : kv::first_block_seen(next, window)),
                           table + kv::blocks_for(std::max(next, memory.kept)));
      if (std::ranges::find_first_of(seen, pages_[g]) != seen.end()) return true;
    }
    return false;
  }

 private:
  const std::span<const kv::PageGroup> groups_;
  std::vector<std::vector<int32_t>> pages_;
};

}  // namespace weir::sched
