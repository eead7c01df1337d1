#include "kv/disk/spill.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <vector>

#include "base/check.h"

namespace weir::kv::disk {

Spill::Spill(PrefixCache& cache, PageMemory& memory, DiskCache& disk)
    : cache_(cache), memory_(memory), disk_(disk) {
  const PageShape& shape = disk.shape();
  for (int32_t g = 0; g < shape.groups; ++g)
    CHECK(shape.page_bytes[static_cast<size_t>(g)] == memory.kept_bytes(g));
  cache_.watch(this);
}

Spill::~Spill() { cache_.watch(nullptr); }

void Spill::leaves(PageId entry) { (void)write_group(entry); }

// Where nothing is needed beside the spine, the reader alone decides, who knows more by then.
bool Spill::spine_pays() const {
  const PageShape& shape = disk_.shape();
  return !shape.has_sides() || disk_.pays(shape.page_bytes[0], kPageTokens);
}

// A text of so many blocks is worth it, with all that a sequence needs that goes on there.
bool Spill::end_pays(int32_t end) const {
  const PageShape& shape = disk_.shape();
  return disk_.pays(end * shape.page_bytes[0] + shape.side_bytes(end), end * kPageTokens);
}

PageSet Spill::to_store(const PrefixCache::Cached& entry) const {
  const PageSet pages = entry.to_store();
  if (pages == 0 || !spine_pays()) return 0;
  const auto spine = static_cast<PageSet>(pages & page_bit(0));
  return pages == spine || end_pays(entry.key.pages) ? pages : spine;
}

// Blocks before `last` in its group that have anything to store, one after another, and `last`
// itself. False: there is no buffer.
bool Spill::write_group(PageId last) {
  const PageShape& shape = disk_.shape();
  std::array<PageId, kExtentBlocksMax> entries{};
  std::array<PageSet, kExtentBlocksMax> pages{};
  int32_t blocks = 0;
  int64_t room = payload_bytes_max(shape);
  for (PageId entry = last; blocks < kExtentBlocksMax && in_group(entry, group_of(last));) {
    const PrefixCache::Cached each = cache_.cached(entry);
    const PageSet store = to_store(each);
    room -= shape.bytes_of(store);
    if (store == 0 || room < 0) break;
    entries[static_cast<size_t>(blocks)] = entry;
    pages[static_cast<size_t>(blocks++)] = store;
    entry = each.parent;
  }
  if (blocks == 0) return true;
  DiskCache::Buffer* const buffer = disk_.take_buffer();
  if (buffer == nullptr) return false;
  ExtentHead& head = buffer->head;
  head = ExtentHead();
  head.blocks = blocks;
  std::byte* to = buffer->bytes.data() + kBlockBytes;
  for (int32_t i = 0; i < blocks; ++i) {
    const auto at = static_cast<size_t>(i), from = static_cast<size_t>(blocks - 1 - i);
    const PrefixCache::Cached each = cache_.cached(entries[from]);
    if (i == 0) head.parent = each.parent_key;
    head.pages[at] = pages[from];
    head.tokens[at] = each.tokens;
    for (int32_t g = 0; g < shape.groups; ++g) {
      if (!has_page(pages[from], g)) continue;
      const auto bytes = static_cast<size_t>(shape.page_bytes[static_cast<size_t>(g)]);
      memory_.copy_out(g, cache_.page_of(entries[from], g), {to, bytes});
      to += bytes;
    }
    cache_.set_stored(entries[from], each.stored | pages[from]);
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
    if (!each.worth_keeping) continue;
    cache_.set_stored(page, disk_.pages_of(each.key));
    if (planned[static_cast<size_t>(page)]) continue;
    ends.push_back(page);
    for (PageId before = page; in_group(before, group_of(page)); before = parent_of(before))
      planned[static_cast<size_t>(before)] = true;
  }
  for (const PageId end : ends | std::views::reverse) {
    for (PageId page = end; in_group(page, group_of(end)); page = parent_of(page)) {
      if (to_store(cache_.cached(page)) == 0) continue;
      if (!disk_.wait_for_buffer(until) || !write_group(page)) return;
    }
  }
  disk_.flush(until);
}

}  // namespace weir::kv::disk
