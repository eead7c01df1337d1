#include "kv/disk/spill.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <vector>

#include "base/check.h"

namespace weir::kv::disk {

Spill::Spill(PrefixCache& cache, PageMemory& memory, DiskCache& disk)
    : cache_(cache), memory_(memory), disk_(disk), blocks_max_(blocks_in_buffer(disk.shape())) {
  CHECK(memory.groups().size() == 1);
  cache_.watch(this);
}

Spill::~Spill() { cache_.watch(nullptr); }

void Spill::leaves(PageId page) { (void)write_group(page); }

// Blocks before `last` in its group, as many as are not on disk, and `last` itself. False: there is
// no buffer.
bool Spill::write_group(PageId last) {
  std::array<PageId, kExtentBlocksMax> pages{};
  int32_t blocks = 0;
  for (PageId page = last; blocks < blocks_max_ && in_group(page, group_of(last));) {
    const PrefixCache::Cached each = cache_.cached(page);
    if (!each.worth_keeping || each.stored || !each.computed) break;
    pages[static_cast<size_t>(blocks++)] = page;
    page = each.parent;
  }
  if (blocks == 0) return true;
  DiskCache::Buffer* const buffer = disk_.take_buffer();
  if (buffer == nullptr) return false;
  ExtentHead& head = buffer->head;
  head = ExtentHead();
  head.blocks = blocks;
  std::byte* to = buffer->bytes.data() + kBlockBytes;
  for (int32_t i = 0; i < blocks; ++i) {
    const auto at = static_cast<size_t>(i);
    const PageId page = pages[static_cast<size_t>(blocks - 1 - i)];
    const PrefixCache::Cached each = cache_.cached(page);
    if (i == 0) head.parent = each.parent_key;
    head.pages[at] = 1;
    head.tokens[at] = each.tokens;
    const auto bytes = static_cast<size_t>(memory_.bytes_of_page(0));
    memory_.copy_out(0, page, {to, bytes});
    to += bytes;
    cache_.set_stored(page);
  }
  disk_.write(*buffer);
  return true;
}

// Ends of groups are found among the least recently used, where children come before their parents;
// they are written in the other order, so that what is cut off at the end could be found.
void Spill::write_all(std::chrono::steady_clock::time_point until) {
  const std::vector<PageId> pages = cache_.newest_first();
  std::vector<bool> planned(static_cast<size_t>(memory_.page_count(0)), false);
  std::vector<PageId> ends;
  for (const PageId page : pages | std::views::reverse) {
    const PrefixCache::Cached each = cache_.cached(page);
    if (!each.worth_keeping || !each.computed) continue;
    cache_.set_stored(page, disk_.contains(each.key));
    if (planned[static_cast<size_t>(page)]) continue;
    ends.push_back(page);
    for (PageId before = page; in_group(before, group_of(page)); before = parent_of(before))
      planned[static_cast<size_t>(before)] = true;
  }
  for (const PageId end : ends | std::views::reverse) {
    for (PageId page = end; in_group(page, group_of(end)); page = parent_of(page)) {
      if (cache_.cached(page).stored) continue;
      if (!disk_.wait_for_buffer(until) || !write_group(page)) return;
    }
  }
  disk_.flush(until);
}

}  // namespace weir::kv::disk
