#include "sched/disk_loads.h"

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "sched/sequence_blocks.h"

namespace weir::sched {

namespace {

// Sequences that are looked for in one plan: the keys of a text of 128 thousand tokens take about
// 0.3 ms.
constexpr int32_t kLooksMax = 8;
// Steps with fewer tokens of prompts say little about how fast those are.
constexpr int32_t kLearnTokens = 64;
// A new measurement counts so much of the running mean.
constexpr double kNewShare = 0.25;

}  // namespace

DiskLoads::DiskLoads(kv::SequenceMemory& memory, kv::PageMemory& pages, kv::disk::DiskCache& disk,
                     int32_t context_max)
    : memory_(memory), disk_(disk) {
  const int32_t blocks = kv::blocks_for(context_max);
  keys_.reserve(static_cast<size_t>(blocks));
  for (Slot& slot : slots_) {
    slot.holding.reserve(static_cast<int32_t>(pages.groups().size()), blocks);
    slot.load.keys.reserve(static_cast<size_t>(blocks));
    slot.load.tokens.reserve(static_cast<size_t>(blocks));
    slot.load.pages.reserve(static_cast<size_t>(blocks));
    slot.load.memory = &pages;
  }
}

int32_t DiskLoads::collect() {
  int32_t tokens = 0;
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::kReading || !slot.load.done.load(std::memory_order_acquire))
      continue;
    const int32_t end = slot.load.from + slot.load.loaded;
    memory_.share(slot.holding, slot, end * kv::kPageTokens);
    for (int32_t block = slot.load.from; block < slot.holding.shared_blocks(); ++block)
      memory_.cache()->set_stored(slot.holding.view().pages(0)[block]);
    tokens += slot.load.loaded * kv::kPageTokens;
    end_wait(slot);
    end_load(slot);
  }
  return tokens;
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
    if (seq->on_disk != OnDisk::kUnknown && seq->on_disk != OnDisk::kLacksMemory) continue;
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
  const int32_t known = memory_.known_blocks(seq->salt, *seq, keys_);
  if ((blocks - known) * kv::kPageTokens < kWorthTokens) return OnDisk::kKnown;
  const std::optional<kv::disk::Store::Found> found = disk_.find(keys_, known);
  if (!found) return OnDisk::kUnknown;
  if (!worth_reading(*found)) return OnDisk::kKnown;
  Slot* const slot = free_slot();
  if (slot == nullptr) return OnDisk::kUnknown;

  memory_.begin(slot->holding, seq->salt);
  (void)memory_.match(slot->holding, *seq, 0, known * kv::kPageTokens);
  const int32_t from = slot->holding.blocks(), end = known + found->blocks;
  if (blocks_wanted(seq) - from + promised > memory_.available()) {
    memory_.release(slot->holding);
    return OnDisk::kLacksMemory;
  }
  memory_.grow(slot->holding, end * kv::kPageTokens);
  kv::disk::DiskCache::Load& load = slot->load;
  load.salt = seq->salt;
  load.from = from;
  load.keys.assign(keys_.begin(), keys_.begin() + end);
  load.tokens.resize(static_cast<size_t>(end));
  for (int32_t block = 0; block < end; ++block)
    seq->read(block, load.tokens[static_cast<size_t>(block)]);
  const int32_t* const table = slot->holding.view().pages(0);
  load.pages.assign(table + from, table + end);
  slot->seq = seq;
  slot->arrival = seq->arrival;
  slot->state = Slot::State::kBegun;
  return OnDisk::kComing;
}

bool DiskLoads::worth_reading(const kv::disk::Store::Found& found) const {
  const int32_t tokens = found.blocks * kv::kPageTokens;
  if (tokens < kWorthTokens) return false;
  const double bytes_a_second = disk_.read_bytes_a_second();
  if (bytes_a_second == 0 || prompt_rate_ == 0) return true;
  return static_cast<double>(found.bytes) / bytes_a_second < tokens / prompt_rate_;
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
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::kReading)
      while (!slot.load.done.load(std::memory_order_acquire)) std::this_thread::yield();
    if (slot.state == Slot::State::kFree) continue;
    end_wait(slot);
    end_load(slot);
  }
}

void DiskLoads::learn(int32_t tokens, double seconds) {
  if (tokens < kLearnTokens || seconds <= 0) return;
  const double rate = tokens / seconds;
  prompt_rate_ = prompt_rate_ == 0 ? rate : prompt_rate_ + kNewShare * (rate - prompt_rate_);
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
