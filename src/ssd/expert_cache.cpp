// Scores, rows of costs and the search for the coldest expert.
#include "ssd/expert_cache.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace weir::ssd {
namespace {

// Costs of what may not go: absent or pinned, and protected. Scores stay below kRenormalise times
// what one expert can gather (4 / (1 - kept)), far from both.
constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr float kGuarded = 1e37f;
constexpr float kRenormalise = 1e30f;

// Rows are searched in strips of independent minima, which compilers turn into vectors.
constexpr size_t kLanes = 16;

}  // namespace

ExpertCache::ExpertCache(int32_t layers, int32_t experts, std::span<const int32_t> class_of_layer,
                         std::span<const int32_t> slots_of_class, float kept)
    : layers_(layers),
      experts_(experts),
      stride_((static_cast<size_t>(experts) + kLanes - 1) / kLanes * kLanes),
      growth_(1 / kept),
      class_of_layer_(class_of_layer.begin(), class_of_layer.end()),
      classes_(slots_of_class.size()) {
  CHECK(layers > 0 && experts > 0 && kept > 0 && kept < 1);
  CHECK(class_of_layer.size() == static_cast<size_t>(layers));
  int32_t slots = 0;
  for (size_t c = 0; c < classes_.size(); ++c) {
    SlotClass& cls = classes_[c];
    cls.begin = slots;
    cls.count = slots_of_class[c];
    CHECK(cls.count >= 0);
    slots += cls.count;
    cls.free.reserve(static_cast<size_t>(cls.count));
    cls.shed.reserve(static_cast<size_t>(cls.count));
  }
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t cls = class_of_layer_[static_cast<size_t>(layer)];
    CHECK(cls >= 0 && static_cast<size_t>(cls) < classes_.size());
    classes_[static_cast<size_t>(cls)].layers.push_back(layer);
  }
  const size_t keys = static_cast<size_t>(layers) * static_cast<size_t>(experts);
  slot_of_.assign(keys, -1);
  score_.assign(keys, 0);
  flags_.assign(keys, 0);
  gone_at_.assign(keys, 0);
  cost_.assign(static_cast<size_t>(layers) * stride_, kNever);
  rows_.resize(static_cast<size_t>(layers));
  key_of_.assign(static_cast<size_t>(slots), -1);
  pins_.assign(static_cast<size_t>(slots), 0);
  moved_.reserve(static_cast<size_t>(slots));
}

void ExpertCache::pin(int32_t slot) {
  CHECK(holds_expert(slot));
  if (pins_[slot_index(slot)]++ == 0) update_cost(key_of(slot));
}

void ExpertCache::unpin(int32_t slot) {
  CHECK(pins_[slot_index(slot)] > 0);
  if (--pins_[slot_index(slot)] == 0) update_cost(key_of(slot));
}

void ExpertCache::touch(ExpertKey key, float weight) {
  score_[index(key)] += weight * increment_;
  update_cost(key);
}

void ExpertCache::touch_prompt(ExpertKey key, int32_t rows, int32_t chunk_rows) {
  CHECK(chunk_rows > 0);
  const float weight =
      static_cast<float>(rows) * std::min(0.125f, 12.0f / static_cast<float>(chunk_rows));
  float& score = score_[index(key)];
  score = std::max(score, weight * increment_);
  update_cost(key);
}

void ExpertCache::seed(ExpertKey key, float score) {
  score_[index(key)] = score * increment_;
  update_cost(key);
}

void ExpertCache::advance() {
  ++now_;
  increment_ *= growth_;
  if (increment_ > kRenormalise) renormalise();
}

void ExpertCache::renormalise() {
  // What scores nothing measurable now becomes nothing, before it turns into denormals.
  for (float& score : score_) {
    score /= increment_;
    if (score < 1e-20f) score = 0;
  }
  increment_ = 1;
  for (int32_t layer = 0; layer < layers_; ++layer) {
    for (int32_t expert = 0; expert < experts_; ++expert) update_cost({layer, expert});
    rows_[static_cast<size_t>(layer)].expert = -1;
  }
}

void ExpertCache::protect(ExpertKey key) {
  uint8_t& flags = flags_[index(key)];
  if ((flags & kProtected) != 0) return;
  flags |= kProtected;
  ++rows_[static_cast<size_t>(key.layer)].guarded;
  update_cost(key);
}

void ExpertCache::layer_done(int32_t layer) {
  Row& row = rows_[static_cast<size_t>(layer)];
  for (int32_t expert = 0; row.guarded > 0; ++expert) {
    const ExpertKey key{layer, expert};
    uint8_t& flags = flags_[index(key)];
    if ((flags & kProtected) == 0) continue;
    flags &= static_cast<uint8_t>(~kProtected);
    --row.guarded;
    update_cost(key);
  }
}

// Keeps cost_ and its row's minimum in step with what is known of the expert.
void ExpertCache::update_cost(ExpertKey key) {
  const size_t at = index(key);
  const int32_t slot = slot_of_[at];
  float cost = kNever;
  if (slot >= 0 && pins_[slot_index(slot)] == 0)
    cost = (flags_[at] & kProtected) != 0 ? kGuarded : score_[at];
  float& old = cost_[cost_index(key)];
  if (cost == old) return;
  Row& row = rows_[static_cast<size_t>(key.layer)];
  if (row.expert >= 0 && cost < row.value) {
    row.value = cost;
    row.expert = key.expert;
  } else if (row.expert == key.expert) {
    row.expert = -1;
  }
  old = cost;
}

void ExpertCache::find_coldest(int32_t layer) {
  const float* costs = cost_.data() + static_cast<size_t>(layer) * stride_;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kNever);
  for (size_t i = 0; i < stride_; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = costs[i + lane] < lanes[lane] ? costs[i + lane] : lanes[lane];
  Row& row = rows_[static_cast<size_t>(layer)];
  row.value = *std::min_element(lanes, lanes + kLanes);
  row.expert = static_cast<int32_t>(std::find(costs, costs + experts_, row.value) - costs);
}

// The expert of the class that is worth least now, and its score in today's units; value kNever:
// there is none, value above kGuarded: only protected ones.
ExpertKey ExpertCache::coldest(const SlotClass& cls, int32_t layer_now, float* value) {
  ExpertKey found;
  float least = kNever;
  *value = kNever;
  const float distance_unit = kDistanceWeight * increment_ / static_cast<float>(layers_);
  for (const int32_t layer : cls.layers) {
    Row& row = rows_[static_cast<size_t>(layer)];
    if (row.expert < 0) find_coldest(layer);
    if (row.value == kNever) continue;
    // 1: runs next; layers_: has just run.
    const int32_t distance = (layer - layer_now - 1 + layers_) % layers_ + 1;
    const float worth = row.value - distance_unit * static_cast<float>(distance);
    if (worth >= least) continue;
    least = worth;
    found = {layer, row.expert};
    *value = row.value == kGuarded ? kGuarded : row.value / increment_;
  }
  return found;
}

int32_t ExpertCache::place(ExpertKey key, int32_t layer_now) {
  return place_above(key, layer_now, kNever, true);
}

int32_t ExpertCache::place_prompt(ExpertKey key, int32_t layer_now) {
  return place_above(key, layer_now, score(key), false);
}

int32_t ExpertCache::place_speculative(ExpertKey key, int32_t layer_now, float gain) {
  const int32_t slot = place_above(key, layer_now, gain * score_max(), false);
  if (slot >= 0) protect(key);
  return slot;
}

// Places in a free slot, or in that of the coldest if it scores below `limit`; if it is protected,
// only for a demand.
int32_t ExpertCache::place_above(ExpertKey key, int32_t layer_now, float limit, bool demand) {
  const size_t at = index(key);
  CHECK(slot_of_[at] < 0);
  SlotClass& cls = classes_[static_cast<size_t>(class_of(key))];
  if (cls.free.empty()) {
    float value = 0;
    const ExpertKey victim = coldest(cls, layer_now, &value);
    if (value >= limit || (value == kGuarded && !demand)) return -1;
    evict(victim);
    stats_.evictions.add();
    flags_[index(victim)] |= kEvicted;
    gone_at_[index(victim)] = now_;
  }
  const int32_t slot = cls.free.back();
  cls.free.pop_back();
  if ((flags_[at] & kEvicted) != 0 && now_ - gone_at_[at] <= kRereadTokens) stats_.rereads.add();
  flags_[at] &= static_cast<uint8_t>(~kEvicted);
  slot_of_[at] = slot;
  key_of_[slot_index(slot)] = static_cast<int32_t>(at);
  pins_[slot_index(slot)] = 1;
  stats_.residents.set(++residents_);
  return slot;
}

// Its slot becomes free. REQUIRES: resident, no pins.
void ExpertCache::evict(ExpertKey key) {
  const int32_t slot = slot_of(key);
  CHECK(slot >= 0 && pins_[slot_index(slot)] == 0);
  slot_of_[index(key)] = -1;
  key_of_[slot_index(slot)] = -1;
  update_cost(key);
  classes_[static_cast<size_t>(class_of(key))].free.push_back(slot);
  stats_.residents.set(--residents_);
}

void ExpertCache::discard(int32_t slot) {
  CHECK(holds_expert(slot));
  evict(key_of(slot));
}

void ExpertCache::set_usable(int32_t cls, int32_t slots) {
  SlotClass& c = classes_[static_cast<size_t>(cls)];
  CHECK(slots >= c.faulted && slots <= c.count);
  for (; c.faulted < slots; ++c.faulted) {
    c.free.push_back(c.begin + c.faulted);
    ++c.usable;
  }
}

std::span<const int32_t> ExpertCache::shrink(int32_t cls, int32_t n) {
  SlotClass& c = classes_[static_cast<size_t>(cls)];
  moved_.clear();
  for (; n > 0; --n) {
    if (c.free.empty()) {
      float value = 0;
      const ExpertKey victim = coldest(c, 0, &value);
      if (value == kNever) break;
      evict(victim);
      stats_.evictions.add();
      flags_[index(victim)] |= kEvicted;
      gone_at_[index(victim)] = now_;
    }
    moved_.push_back(c.free.back());
    c.shed.push_back(c.free.back());
    c.free.pop_back();
    --c.usable;
  }
  return moved_;
}

std::span<const int32_t> ExpertCache::grow(int32_t cls, int32_t n) {
  SlotClass& c = classes_[static_cast<size_t>(cls)];
  moved_.clear();
  for (; n > 0 && !c.shed.empty(); --n) {
    moved_.push_back(c.shed.back());
    c.free.push_back(c.shed.back());
    c.shed.pop_back();
    ++c.usable;
  }
  return moved_;
}

void ExpertCache::check() const {
  int32_t residents = 0;
  for (size_t slot = 0; slot < key_of_.size(); ++slot) {
    CHECK(pins_[slot] >= 0);
    if (key_of_[slot] < 0) {
      CHECK(pins_[slot] == 0);
      continue;
    }
    ++residents;
    CHECK(slot_of_[static_cast<size_t>(key_of_[slot])] == static_cast<int32_t>(slot));
    const SlotClass& cls =
        classes_[static_cast<size_t>(class_of(key_of(static_cast<int32_t>(slot))))];
    CHECK(static_cast<int32_t>(slot) >= cls.begin &&
          static_cast<int32_t>(slot) < cls.begin + cls.faulted);
  }
  CHECK(residents == residents_);
  int32_t usable = 0, unused = 0;
  for (const SlotClass& cls : classes_) {
    usable += cls.usable;
    unused += static_cast<int32_t>(cls.free.size());
    CHECK(cls.usable + static_cast<int32_t>(cls.shed.size()) == cls.faulted);
    for (const int32_t slot : cls.free) CHECK(key_of_[slot_index(slot)] < 0);
    for (const int32_t slot : cls.shed) CHECK(key_of_[slot_index(slot)] < 0);
  }
  CHECK(usable == unused + residents_);
  for (int32_t layer = 0; layer < layers_; ++layer) {
    const Row& row = rows_[static_cast<size_t>(layer)];
    const float* costs = cost_.data() + static_cast<size_t>(layer) * stride_;
    if (row.expert >= 0) CHECK(row.value == *std::min_element(costs, costs + experts_));
    int32_t guarded = 0;
    for (int32_t expert = 0; expert < experts_; ++expert)
      guarded += (flags_[index({layer, expert})] & kProtected) != 0 ? 1 : 0;
    CHECK(guarded == row.guarded);
  }
}

}  // namespace weir::ssd
