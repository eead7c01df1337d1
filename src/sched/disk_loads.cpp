#include "sched/disk_loads.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "base/check.h"
#include "sched/sequence_blocks.h"

namespace weir::sched {

namespace {

// Sequences that are looked for in one plan: the keys of a text of 128 thousand tokens take about
// 0.3 ms.
constexpr int32_t kLooksMax = 8;

}  // namespace

DiskLoads::DiskLoads(kv::SequenceMemory& memory, kv::PageMemory& pages, kv::disk::DiskCache& disk,
                     int32_t context_max)
    : memory_(memory),
      disk_(disk),
      slots_(all_slots_.data(), static_cast<size_t>(kv::disk::loads_at_once(disk.shape()))) {
  const auto blocks = static_cast<size_t>(kv::blocks_for(context_max));
  keys_.reserve(blocks);
  in_memory_.reserve(blocks);
  wanted_.reserve(blocks);
  for (Slot& slot : slots_) {
    slot.holding.reserve(static_cast<int32_t>(pages.groups().size()), static_cast<int32_t>(blocks));
    slot.wanted.reserve(blocks);
    slot.load.keys.reserve(blocks);
    slot.load.tokens.reserve(blocks);
    slot.load.wanted.reserve(blocks);
    for (int32_t g = 0; g < disk.shape().groups; ++g)
      slot.load.pages[static_cast<size_t>(g)].reserve(blocks);
    slot.load.memory = &pages;
  }
}

int32_t DiskLoads::collect() {
  int32_t tokens = 0;
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::kReading || !slot.load.done.load(std::memory_order_acquire))
      continue;
    if (const int32_t end = blocks_come(slot); end > slot.had) {
      const int32_t shared = memory_.end_fill(slot.holding, slot, end);
      kv::PrefixCache& cache = *memory_.cache();
      for (int32_t block = 0; block < shared; ++block) {
        const kv::PageId entry = slot.holding.view().pages(0)[block];
        const kv::disk::PageSet read = slot.wanted[static_cast<size_t>(block)];
        cache.set_stored(entry, cache.cached(entry).stored | read);
      }
      const bool of_use = shared == end || !disk_.shape().has_sides();
      if (of_use) tokens += std::max(0, shared - slot.had) * kv::kPageTokens;
    }
    end_wait(slot);
    end_load(slot);
  }
  return tokens;
}

// Pages of the spine are of use as far as they have come; what is needed besides is for the end.
int32_t DiskLoads::blocks_come(const Slot& slot) const {
  const std::vector<kv::disk::PageSet>& missing = slot.load.wanted;
  const auto first = std::ranges::find_if(missing, [](auto pages) { return pages != 0; });
  if (first != missing.end() && disk_.shape().has_sides()) return 0;
  return static_cast<int32_t>(first - missing.begin());
}

void DiskLoads::end_wait(Slot& slot) {
  if (slot.seq->arrival == slot.arrival && slot.seq->on_disk == Sequence::OnDisk::kComing)
    slot.seq->on_disk = Sequence::OnDisk::kKnown;
}

void DiskLoads::end_load(Slot& slot) {
  memory_.release(slot.holding);
  slot.state = Slot::State::kFree;
  slot.seq = nullptr;
}

void DiskLoads::look(std::span<Sequence* const> waiting, int32_t promised) {
  int32_t looks = 0;
  for (Sequence* seq : waiting) {
    using OnDisk = Sequence::OnDisk;
    if (seq->on_disk == OnDisk::kComing || seq->on_disk == OnDisk::kKnown) continue;
    // Its text is not looked up once more in each plan until one is free.
    if (seq->on_disk == OnDisk::kLacksLoad && free_slot() == nullptr) continue;
    if (looks++ == kLooksMax) return;
    seq->on_disk = look_for(seq, promised);
    if (seq->on_disk == OnDisk::kLacksMemory) return;  // None passes it.
  }
}

// Its last token is computed in any case.
Sequence::OnDisk DiskLoads::look_for(Sequence* seq, int32_t promised) {
  using OnDisk = Sequence::OnDisk;
  const int32_t blocks = (seq->length - 1) / kv::kPageTokens;
  if (seq->whole_prompt || seq->known < seq->length || disk_.failed()) return OnDisk::kKnown;
  if (blocks * kv::kPageTokens < kWorthTokens) return OnDisk::kKnown;
  keys_.resize(static_cast<size_t>(blocks));
  in_memory_.resize(keys_.size());
  wanted_.resize(keys_.size());
  const int32_t known = memory_.known_blocks(seq->salt, *seq, keys_, in_memory_);
  const int32_t had = disk_.shape().last_end(in_memory_);
  if ((blocks - had) * kv::kPageTokens < kWorthTokens) return OnDisk::kKnown;
  const std::optional<kv::disk::Store::Found> found = disk_.find(keys_, in_memory_, wanted_);
  if (!found) return OnDisk::kUnknown;
  if (!worth_reading(*found, had)) return OnDisk::kKnown;
  Slot* const slot = free_slot();
  if (slot == nullptr) return OnDisk::kLacksLoad;

  const auto end = static_cast<size_t>(found->end);
  slot->had = had;
  slot->wanted.assign(wanted_.begin(), wanted_.begin() + found->end);
  const int32_t spare = std::max(0, blocks_wanted(seq) - found->end) + promised;
  if (!memory_.begin_fill(slot->holding, seq->salt, *seq, known, slot->wanted, spare))
    return OnDisk::kLacksMemory;
  kv::disk::DiskCache::Load& load = slot->load;
  load.salt = seq->salt;
  load.keys.assign(keys_.begin(), keys_.begin() + found->end);
  load.tokens.resize(end);
  for (int32_t block = 0; block < found->end; ++block)
    seq->read(block, load.tokens[static_cast<size_t>(block)]);
  load.wanted = slot->wanted;
  give_places(*slot);
  slot->seq = seq;
  slot->arrival = seq->arrival;
  slot->state = Slot::State::kBegun;
  return OnDisk::kComing;
}

// Where what is wanted is to lie.
void DiskLoads::give_places(Slot& slot) const {
  kv::disk::DiskCache::Load& load = slot.load;
  const kv::MemoryView view = slot.holding.view();
  const int32_t states = load.memory->checkpoint_group();
  for (int32_t g = 0; g < disk_.shape().groups; ++g) {
    std::vector<kv::PageId>& pages = load.pages[static_cast<size_t>(g)];
    if (g != states) {
      pages.assign(view.pages(g), view.pages(g) + slot.wanted.size());
      continue;
    }
    pages.assign(slot.wanted.size(), -1);
    if (kv::disk::has_page(slot.wanted.back(), g))
      pages.back() = kv::SequenceMemory::filled_state(slot.holding) -
                     load.memory->state_slots().running;
  }
}

bool DiskLoads::worth_reading(const kv::disk::Store::Found& found, int32_t had) const {
  const int32_t tokens = (found.end - had) * kv::kPageTokens;
  return tokens >= kWorthTokens && disk_.pays(found.bytes, tokens);
}

DiskLoads::Slot* DiskLoads::free_slot() {
  const auto free = std::ranges::find(slots_, Slot::State::kFree, &Slot::state);
  return free == slots_.end() ? nullptr : &*free;
}

void DiskLoads::start() {
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::kBegun) continue;
    slot.state = Slot::State::kReading;
    disk_.load(slot.load);
  }
}

void DiskLoads::finish() {
  for (Slot& slot : slots_) slot.load.unwanted.store(true, std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::kReading)
      while (!slot.load.done.load(std::memory_order_acquire)) std::this_thread::yield();
    if (slot.state == Slot::State::kFree) continue;
    end_wait(slot);
    end_load(slot);
  }
}

bool DiskLoads::active() const {
  return std::ranges::any_of(slots_,
                             [](const Slot& slot) { return slot.state != Slot::State::kFree; });
}

bool DiskLoads::reading() const {
  return active() && std::ranges::none_of(slots_, [](const Slot& slot) {
           return slot.state == Slot::State::kBegun;
         });
}

void DiskLoads::add_holdings(std::vector<const kv::Holding*>& holdings) const {
  for (const Slot& slot : slots_)
    if (slot.state != Slot::State::kFree) holdings.push_back(&slot.holding);
}

}  // namespace weir::sched
