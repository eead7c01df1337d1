#include "kv/cross_slots.h"

#include <algorithm>

#include "base/check.h"

namespace weir::kv {

int32_t CrossSlots::take(const CrossKey& key) {
  auto slot = std::ranges::find_if(
      slots_, [&key](const Slot& one) { return one.known && one.key == key; });
  if (slot == slots_.end()) {
    CHECK(held_ < count());
    const auto last_use = [](const Slot& one) { return one.holders > 0 ? UINT64_MAX : one.used; };
    slot = std::ranges::min_element(slots_, {}, last_use);
    slot->key = key;
    slot->known = true;
    slot->filled = false;
  }
  if (slot->holders++ == 0) ++held_;
  slot->used = ++uses_;
  return static_cast<int32_t>(slot - slots_.begin());
}

void CrossSlots::hold(int32_t slot) {
  CHECK(is_held(slot));
  ++at(slot).holders;
}

void CrossSlots::give_back(int32_t slot) {
  CHECK(is_held(slot));
  at(slot).used = ++uses_;
  if (--at(slot).holders == 0) --held_;
}

void CrossSlots::set_filled(int32_t slot) {
  CHECK(is_held(slot));
  at(slot).filled = true;
}

void CrossSlots::forget() {
  for (Slot& slot : slots_)
    if (slot.holders == 0) slot.known = slot.filled = false;
}

void CrossSlots::check(std::span<const int32_t> holders) const {
  CHECK(holders.size() == slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    CHECK(slot.holders == holders[i] && (slot.known || (!slot.filled && slot.holders == 0)));
    const auto same = [&slot](const Slot& one) { return one.known && one.key == slot.key; };
    CHECK(!slot.known || std::ranges::count_if(slots_, same) == 1);
  }
  CHECK(held_ == std::ranges::count_if(slots_, [](const Slot& one) { return one.holders > 0; }));
}

}  // namespace weir::kv
