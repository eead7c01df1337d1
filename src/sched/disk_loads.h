// DiskLoads: blocks of waiting sequences that come from disk (kv/disk/disk_cache.h). A sequence
// that finds more on disk than in memory waits until that is loaded, and is admitted then as if
// another had computed it; meanwhile others go on.
//
// What is missing must be worth it: at least kWorthTokens tokens, and read faster than they would
// be computed, as far as both are measured, with the bytes of all that is to be read: also of what a
// sequence needs besides to go on where they end (kv/disk/page_shape.h).
//
// A load holds the blocks that it fills, like a sequence; when it is done they go to the prefix
// cache. Where something is needed besides they go there only if all has come. It begins in a plan,
// where it gets its pages, and they are written once all steps that were planned before have run:
// until then one of those may still use them.
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/disk/disk_cache.h"
#include "kv/sequence_memory.h"
#include "sched/sequence.h"

namespace weir::sched {

class DiskLoads {
 public:
  static constexpr int32_t kWorthTokens = 256;

  // All outlive it. `context_max`: positions of a sequence.
  DiskLoads(kv::SequenceMemory& memory, kv::PageMemory& pages, kv::disk::DiskCache& disk,
            int32_t context_max);
  ~DiskLoads() { finish(); }
  DiskLoads(const DiskLoads&) = delete;
  DiskLoads& operator=(const DiskLoads&) = delete;

  // Of each plan, first: what has come goes to the prefix cache, and its sequences wait no longer.
  // Returns the tokens that have come.
  int32_t collect();
  // Then: looks for what waiting sequences lack. `promised`: blocks that running ones may still ask
  // for, which are left to them.
  void look(std::span<Sequence* const> waiting, int32_t promised);
  // Between two steps: pages of loads that began in plans before may be written.
  void start();
  // What is not read yet is wanted no more: waits for the extent that is being read. None begins any
  // more.
  void finish();

  // Some blocks are held by loads; all of those are being read.
  bool active() const;
  bool reading() const;
  // What these hold, for SequenceMemory::check().
  void add_holdings(std::vector<const kv::Holding*>& holdings) const;

 private:
  struct Slot final : kv::TokenKeys {
    enum class State : uint8_t { kFree, kBegun, kReading } state = State::kFree;
    kv::Holding holding;
    kv::disk::DiskCache::Load load;
    std::vector<kv::disk::PageSet> wanted;  // Of each block, as it began.
    int32_t had = 0;  // Blocks after which a sequence could go on without it.
    Sequence* seq = nullptr;  // May have ended since: then `arrival` is another.
    uint64_t arrival = 0;

    void read(int32_t block, kv::BlockTokens& tokens) const override {
      tokens = load.tokens[static_cast<size_t>(block)];
    }
  };

  Sequence::OnDisk look_for(Sequence* seq, int32_t promised);
  bool worth_reading(const kv::disk::Store::Found& found, int32_t had) const;
  int32_t blocks_come(const Slot& slot) const;
  void give_places(Slot& slot) const;
  Slot* free_slot();
  static void end_wait(Slot& slot);
  void end_load(Slot& slot);

  kv::SequenceMemory& memory_;
  kv::disk::DiskCache& disk_;
  std::array<Slot, kv::disk::kLoadsMax> all_slots_;
  const std::span<Slot> slots_;  // Those that are used.
  // Scratch: of each block that is looked for.
  std::vector<kv::PrefixKey> keys_;
  std::vector<kv::disk::PageSet> in_memory_, wanted_;
};

}  // namespace weir::sched
