// KvCache: one buffer; a layer's pages lie one after another, so that a run of pages is a run of
// memory, and so do the layers. States come after all pages, each layer's slots together, then what
// is attended to besides.
#include "kv/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace weir::kv {

Result<KvCache> KvCache::create(MemoryLayout layout, std::span<const int32_t> page_counts,
                                const StateSlots& slots) {
  CHECK(page_counts.size() == layout.groups().size());
  KvCache cache(std::move(layout));
  const int64_t states = cache.layout_.state_bytes(), cross = cache.layout_.cross_bytes();
  if (states > 0) cache.slots_ = slots;
  cache.slots_.cross = cross > 0 ? slots.cross : 0;
  int64_t bytes = states * cache.slots_.count() + cross * cache.slots_.cross;
  for (size_t g = 0; g < page_counts.size(); ++g) {
    if (page_counts[g] < 1)
      return fail(ErrorCode::kConfig,
                  "KV cache: expected at least 1 page, found " + std::to_string(page_counts[g]));
    const MemoryLayout::Group& group = cache.layout_.groups()[g];
    cache.groups_.push_back({.window = group.window, .pages = page_counts[g], .hot = group.hot});
    bytes += group.page_bytes * page_counts[g];
  }
  WEIR_ASSIGN(cache.memory_,
              HugeBuffer::allocate(static_cast<size_t>(std::max<int64_t>(bytes, 1))));
  auto* base = reinterpret_cast<uint8_t*>(cache.memory_.data());
  for (int32_t i = 0; i < cache.layer_count(); ++i) {
    kernels::KvPages pages = cache.layout_.pages_of(i);
    kernels::CodedPages coded = cache.layout_.codes_of(i);
    const auto place = [&](int32_t group, int64_t page_bytes) {
      return std::exchange(base,
                           base + page_bytes * cache.groups_[static_cast<size_t>(group)].pages);
    };
    if (coded.page_bytes > 0) {
      coded.base = place(cache.group_of(i), coded.page_bytes);
      coded.k_rotation = cache.rotation_of(pages.k_dim);
      coded.v_rotation = cache.rotation_of(pages.v_dim);
      pages.base = place(cache.hot_group(), pages.page_bytes);
    } else {
      pages.base = place(cache.group_of(i), pages.page_bytes);
    }
    cache.layers_.push_back(pages);
    cache.coded_.push_back(coded);
  }
  for (int32_t i = 0; i < cache.layer_count(); ++i) {
    cache.states_.push_back({.base = base, .bytes = cache.layout_.state_bytes(i)});
    base += cache.states_.back().bytes * cache.slots_.count();
  }
  cache.cross_numbers_.resize(static_cast<size_t>(cache.slots_.cross * cache.layout_.cross_pages()));
  std::iota(cache.cross_numbers_.begin(), cache.cross_numbers_.end(), 0);
  for (int32_t i = 0; i < cache.layer_count(); ++i) {
    kernels::KvPages pages = cache.layout_.cross_pages_of(i);
    pages.base = base;
    base += pages.page_bytes * std::ssize(cache.cross_numbers_);
    cache.cross_.push_back(pages);
  }
  return cache;
}

// Views of a rotation outlive the vector's growth: its tables stay where they are.
kernels::Rotation KvCache::rotation_of(int32_t dim) {
  for (const kernels::HeadRotation& rotation : rotations_)
    if (rotation.view().dim == dim) return rotation.view();
  return rotations_.emplace_back(dim).view();
}

Result<KvCache> KvCache::create(std::vector<MemoryNeed> needs, Format format, int32_t page_count,
                                const StateSlots& slots) {
  WEIR_ASSIGN(MemoryLayout layout, MemoryLayout::make(std::move(needs), format));
  const std::vector<int32_t> counts(layout.groups().size(), page_count);
  return create(std::move(layout), counts, slots);
}

int32_t KvCache::page_count(int32_t group) const {
  return group == checkpoint_group() ? slots_.checkpoints
                                     : groups_[static_cast<size_t>(group)].pages;
}

int64_t KvCache::bytes_of_page(int32_t group) const {
  return group == checkpoint_group() ? layout_.state_bytes()
                                     : layout_.groups()[static_cast<size_t>(group)].page_bytes;
}

KvCache::Run KvCache::run_of(int32_t group, int32_t index) const {
  if (group == checkpoint_group())
    return {.base = state(index, slots_.running),
            .bytes = states_[static_cast<size_t>(index)].bytes};
  const kernels::CodedPages* const codes = coded(index);
  if (codes != nullptr && group == group_of(index))
    return {.base = codes->base, .bytes = codes->page_bytes};
  if (group != (codes != nullptr ? hot_group() : group_of(index))) return {};
  return {.base = layer(index).base, .bytes = layer(index).page_bytes};
}

void KvCache::give_back(int32_t group, int32_t first, int32_t count) {
  for (int32_t i = 0; i < layer_count(); ++i) give_back(run_of(group, i), first, count);
}

void KvCache::give_back_states() {
  for (const Run& states : states_) give_back(states, 0, slots_.running);
}

void KvCache::give_back_cross() {
  const auto pages = static_cast<int32_t>(cross_numbers_.size());
  for (const kernels::KvPages& cross : cross_)
    give_back({.base = cross.base, .bytes = cross.page_bytes}, 0, pages);
}

void KvCache::give_back(const Run& run, int32_t first, int32_t count) {
  if (run.bytes == 0) return;
  memory_.give_back(offset(run, first), static_cast<size_t>(count * run.bytes));
}

void KvCache::take(int32_t group, int32_t first, int32_t count) {
  for (int32_t i = 0; i < layer_count(); ++i) {
    const Run run = run_of(group, i);
    if (run.bytes > 0) memory_.take(offset(run, first), static_cast<size_t>(count * run.bytes));
  }
}

int64_t KvCache::kept_bytes(int32_t group, int32_t layer) const {
  const int64_t bytes = run_of(group, layer).bytes;
  return group == checkpoint_group() ? bytes - tape_tokens() * layout_.tape_bytes(layer) : bytes;
}

int64_t KvCache::kept_bytes(int32_t group) const {
  int64_t bytes = 0;
  for (int32_t i = 0; i < layer_count(); ++i) bytes += kept_bytes(group, i);
  return bytes;
}

void KvCache::copy_out(int32_t group, int32_t page, std::span<std::byte> to) const {
  CHECK(std::ssize(to) == kept_bytes(group));
  for (int32_t i = 0; i < layer_count(); ++i) {
    const Run run = run_of(group, i);
    const auto bytes = static_cast<size_t>(kept_bytes(group, i));
    if (bytes == 0) continue;
    std::memcpy(to.data(), run.base + page * run.bytes, bytes);
    to = to.subspan(bytes);
  }
  CHECK(to.empty());
}

void KvCache::copy_in(int32_t group, int32_t page, std::span<const std::byte> from) {
  CHECK(std::ssize(from) == kept_bytes(group));
  for (int32_t i = 0; i < layer_count(); ++i) {
    const Run run = run_of(group, i);
    const auto bytes = static_cast<size_t>(kept_bytes(group, i));
    if (bytes == 0) continue;
    std::memcpy(run.base + page * run.bytes, from.data(), bytes);
    from = from.subspan(bytes);
  }
  CHECK(from.empty());
}

// Where a run's page lies in the memory.
size_t KvCache::offset(const Run& run, int32_t first) const {
  const auto* const begin = reinterpret_cast<const uint8_t*>(memory_.data());
  return static_cast<size_t>(run.base - begin + first * run.bytes);
}

int32_t KvCache::pages_in_huge_page(int32_t group) const {
  int64_t least = static_cast<int64_t>(kHugePageBytes);
  for (int32_t i = 0; i < layer_count(); ++i)
    if (const Run run = run_of(group, i); run.bytes > 0) least = std::min(least, run.bytes);
  return static_cast<int32_t>(static_cast<int64_t>(kHugePageBytes) / least) + 1;
}

}  // namespace weir::kv
