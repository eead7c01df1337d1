// PageShape: what blocks have on disk: a page of each group of the memory (kv/layout.h), and where
// layers have states, a checkpoint, which is called a page here as well. And which of these a
// sequence needs that goes on at the end of a block: of the spine all, of a window the last ones, of
// hot pages the first, of states the last.
//
// Threads: values, and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kv/layout.h"

namespace weir::kv::disk {

// Of a layout, and states.
inline constexpr int32_t kShapeGroupsMax = kGroupsMax + 1;
static_assert(kShapeGroupsMax <= 8);  // A bit each, in a byte.

// Which groups a block has a page of: a bit each, by number.
using PageSet = uint8_t;

constexpr bool has_page(PageSet pages, int32_t group) { return (pages >> group & 1) != 0; }
constexpr PageSet page_bit(int32_t group) { return static_cast<PageSet>(1 << group); }

// Blocks of a chain, [first, end).
struct BlockRange {
  int32_t first = 0;
  int32_t end = 0;
};

struct PageShape {
  enum class Reach : uint8_t { kAll, kWindow, kFirst, kLast };

  std::array<int64_t, kShapeGroupsMax> page_bytes{};
  int32_t groups = 1;  // The spine is the first.
  std::array<Reach, kShapeGroupsMax> reach{};
  std::array<int32_t, kShapeGroupsMax> window{};

  // `state_bytes`: of a checkpoint; 0: layers have no states.
  static PageShape of(std::span<const MemoryLayout::Group> groups, int64_t state_bytes);

  // Of a block that has these pages.
  int64_t bytes_of(PageSet pages) const {
    int64_t bytes = 0;
    for (int32_t g = 0; g < groups; ++g)
      if (has_page(pages, g)) bytes += page_bytes[static_cast<size_t>(g)];
    return bytes;
  }
  PageSet all() const { return static_cast<PageSet>((1 << groups) - 1); }
  // A sequence needs more than pages of the spine.
  bool has_sides() const { return groups > 1; }

  // The blocks whose page of the group a sequence needs that goes on after `end` blocks.
  BlockRange needed(int32_t group, int32_t end) const;
  // The most blocks, of those that have these pages, after which a sequence may go on; 0: none.
  int32_t last_end(std::span<const PageSet> pages) const;
  // What it needs, read in whole pages, beside the spine's: for a text so long.
  int64_t side_bytes(int32_t end) const;

  bool operator==(const PageShape&) const = default;
};

}  // namespace weir::kv::disk
