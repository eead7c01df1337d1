#include "kv/disk/page_shape.h"

#include <algorithm>

#include "base/check.h"

namespace weir::kv::disk {

PageShape PageShape::of(std::span<const MemoryLayout::Group> groups, int64_t state_bytes) {
  CHECK(std::ssize(groups) <= kGroupsMax);
  PageShape shape;
  shape.groups = 0;
  const auto add = [&shape](int64_t bytes, Reach needed, int32_t tokens) {
    const auto at = static_cast<size_t>(shape.groups++);
    shape.page_bytes[at] = bytes;
    shape.reach[at] = needed;
    shape.window[at] = tokens;
  };
  for (const MemoryLayout::Group& group : groups) {
    const Reach needed = group.hot          ? Reach::kFirst
                         : group.window > 0 ? Reach::kWindow
                                            : Reach::kAll;
    add(group.page_bytes, needed, needed == Reach::kWindow ? group.window : 0);
  }
  if (state_bytes > 0) add(state_bytes, Reach::kLast, 0);
  return shape;
}

BlockRange PageShape::needed(int32_t group, int32_t end) const {
  const auto at = static_cast<size_t>(group);
  switch (reach[at]) {
    case Reach::kAll:
      return {0, end};
    case Reach::kWindow:
      return {std::min(first_block_seen(end * kPageTokens, window[at]), end), end};
    case Reach::kFirst:
      return {0, std::min(end, 1)};
    case Reach::kLast:
      return {std::max(end - 1, 0), end};
  }
  CHECK(false);
}

int32_t PageShape::last_end(std::span<const PageSet> pages) const {
  int32_t last = 0;
  std::array<int32_t, kShapeGroupsMax> there_from{};  // By group: from this block on all are there.
  for (int32_t block = 0; block < std::ssize(pages); ++block) {
    const PageSet has = pages[static_cast<size_t>(block)];
    if (!has_page(has, 0)) break;
    bool whole = true;
    for (int32_t g = 1; g < groups; ++g) {
      int32_t& from = there_from[static_cast<size_t>(g)];
      if (reach[static_cast<size_t>(g)] == Reach::kFirst) {
        whole = whole && has_page(pages.front(), g);
      } else {
        if (!has_page(has, g)) from = block + 1;
        whole = whole && from <= needed(g, block + 1).first;
      }
    }
    if (whole) last = block + 1;
  }
  return last;
}

int64_t PageShape::side_bytes(int32_t end) const {
  int64_t bytes = 0;
  for (int32_t g = 1; g < groups; ++g) {
    const BlockRange range = needed(g, end);
    bytes += (range.end - range.first) * page_bytes[static_cast<size_t>(g)];
  }
  return bytes;
}

}  // namespace weir::kv::disk
