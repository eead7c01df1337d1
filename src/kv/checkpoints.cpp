#include "kv/checkpoints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weir::kv {

namespace {

// The entry whose block ends at a position.
PageId entry_before(std::span<const PageId> entries, int32_t position) {
  return entries[static_cast<size_t>(position / kPageTokens - 1)];
}

}  // namespace

void Checkpoints::begin(Use& use, int32_t prompt_tokens) {
  use = {.prompt_end = std::max(prompt_tokens - 1, 0) / kPageTokens * kPageTokens};
}

void Checkpoints::restore(Use& use, PageId entry) {
  const PageId source = cache_.lend(entry);
  if (use.next_source >= 0) cache_.release(page(use.next_source), SideCache::Way::kEnded);
  use.next_source = first_ + source;
}

// The last places come first: they save the most, and there may be few slots.
void Checkpoints::plan(Use& use, int32_t begin, int32_t end, std::span<const PageId> entries) {
  plan_without(use);
  Places found;
  for (int32_t i = places(use, begin, end, found) - 1; i >= 0; --i) {
    const int32_t position = found[static_cast<size_t>(i)];
    if (position / kPageTokens <= std::ssize(entries) && has(entry_before(entries, position)))
      continue;
    const PageId taken = take();
    if (taken < 0) break;
    use.marks[static_cast<size_t>(use.count++)] = {.position = position, .slot = first_ + taken};
  }
  std::reverse(use.marks.begin(), use.marks.begin() + use.count);
}

void Checkpoints::plan_without(Use& use) {
  settle(use);
  use.source = std::exchange(use.next_source, -1);
}

void Checkpoints::attach(Use& use, std::span<const PageId> entries) {
  for (; use.attached < use.count; ++use.attached) {
    const StateMark& mark = use.marks[static_cast<size_t>(use.attached)];
    if (mark.position / kPageTokens > std::ssize(entries)) return;
    const PageId entry = entry_before(entries, mark.position);
    if (has(entry)) continue;  // Another sequence has been faster.
    cache_.put(entry, page(mark.slot), /*wanted=*/false);
    if (mark.position <= use.prompt_end || mark.position == use.parted) continue;
    if (use.tail > 0) cache_.drop(entry_before(entries, use.tail));
    use.tail = on_the_way(use, mark.position) ? 0 : mark.position;
  }
}

void Checkpoints::release(Use& use) {
  settle(use);
  if (use.next_source >= 0)
    cache_.release(page(std::exchange(use.next_source, -1)), SideCache::Way::kEnded);
  use = {};
}

// The slice that was planned last runs before all that is planned from here on.
void Checkpoints::settle(Use& use) {
  for (const StateMark& mark : use.planned())
    cache_.release(page(mark.slot),
                   on_the_way(use, mark.position) ? SideCache::Way::kLeft : SideCache::Way::kEnded);
  use.count = use.attached = 0;
  if (use.source >= 0) cache_.release(page(std::exchange(use.source, -1)), SideCache::Way::kEnded);
}

PageId Checkpoints::take() {
  PageId page = -1;
  if (pool_.free_count() == 0 && cache_.evict(1) == 0) return page;
  CHECK(pool_.allocate({&page, 1}));
  return page;
}

// Ascending. In a slice with more of them the first ones on the way are left out.
int32_t Checkpoints::places(const Use& use, int32_t begin, int32_t end, Places& found) {
  int32_t count = 0;
  const auto add = [&](int32_t position) {
    const auto known = found.begin() + count;
    if (position > begin && position <= end && std::find(found.begin(), known, position) == known)
      found[static_cast<size_t>(count++)] = position;
  };
  constexpr int32_t kOnTheWayMax = kMarksMax - kEndsMax;
  const int32_t last = end / kCheckpointTokens;
  for (int32_t i = std::max(begin / kCheckpointTokens, last - kOnTheWayMax) + 1; i <= last; ++i)
    add(i * kCheckpointTokens);
  add(use.prompt_end);
  add(use.parted);
  if (const int32_t tail = end / kPageTokens * kPageTokens; tail > use.prompt_end) add(tail);
  std::sort(found.begin(), found.begin() + count);
  return count;
}

int32_t Checkpoints::last_place(const Use& use, int32_t begin, int32_t end) {
  Places found;
  const int32_t count = places(use, begin, end, found);
  return count == 0 ? 0 : found[static_cast<size_t>(count - 1)];
}

void Checkpoints::check(std::span<const Use* const> uses) const {
  std::vector<int32_t> refs(static_cast<size_t>(count()), 0);
  const auto note = [&](int32_t slot) {
    if (slot >= 0) ++refs[static_cast<size_t>(page(slot))];
  };
  for (const Use* use : uses) {
    CHECK(use->attached <= use->count && use->count <= kMarksMax);
    for (const StateMark& mark : use->planned()) note(mark.slot);
    note(use->source);
    note(use->next_source);
  }
  for (PageId slot = 0; slot < count(); ++slot)
    CHECK(pool_.refs(slot) == refs[static_cast<size_t>(slot)] + (cache_.contains(slot) ? 1 : 0));
}

}  // namespace weir::kv
