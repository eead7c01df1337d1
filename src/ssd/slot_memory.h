// SlotMemory: the memory of an ExpertStore's slots and of the staging buffers for what is read as
// stored. It knows which slots the kernel has given memory for, and gives memory back under
// pressure; what is in a slot is others' business.
//
// Slots come into use one after another as a thread of its own takes their memory from the kernel,
// which takes seconds a GiB on some machines: not in a request's way.
//
// Threads: update() is the owner's (the engine's leader); allow() anybody's; the own thread touches
// only slots that the owner has not been told of.
//
// Invariants:
// (1) slots of a class are those of ExpertCache: counted through, class after class;
// (2) a slot is a multiple of whole pages and crosses no chunk;
// (3) nothing is allocated after create().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "ssd/expert_cache.h"
#include "ssd/expert_catalogue.h"
#include "ssd/store_plan.h"

namespace weir::ssd {

class SlotMemory {
 public:
  // Returns when each class has slots for a first token.
  static Result<std::unique_ptr<SlotMemory>> create(const ExpertCatalogue& catalogue,
                                                    const StorePlan& plan);
  ~SlotMemory();
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;

  std::byte* slot(int32_t index) const { return slots_[static_cast<size_t>(index)]; }
  std::byte* staging(int32_t buffer) const {
    return staging_memory_.data() + static_cast<uint64_t>(buffer) * staging_bytes_;
  }

  // How much of the planned slots may hold anything, in percent; from the next update() on.
  void allow(int32_t percent) { allowed_.store(percent, std::memory_order_relaxed); }
  // Puts slots into use whose memory has come, and gives back that of slots beyond what is allowed,
  // of the coldest experts first. Between steps: nothing is pinned but guesses that are read.
  void update(ExpertCache& cache);

  int64_t slots_shed() const { return slots_shed_; }

 private:
  struct SlotClass {
    int32_t begin = 0;  // Its slots are [begin, begin + count).
    int32_t count = 0;
    uint64_t slot_bytes = 0;
    std::atomic<int32_t> usable{0};  // Slots whose memory is there.
  };

  SlotMemory(const ExpertCatalogue& catalogue, const StorePlan& plan);
  Result<void> allocate(int32_t staging);
  void fault_in();  // The own thread.
  bool fault_some(SlotClass& cls, uint64_t* total);
  int32_t allowed(const SlotClass& cls) const;

  std::vector<SlotClass> classes_;
  const uint64_t staging_bytes_;  // Of a buffer.
  std::vector<HugeBuffer> chunks_;
  HugeBuffer staging_memory_;
  std::vector<std::byte*> slots_;
  int64_t slots_shed_ = 0;
  std::atomic<int32_t> allowed_{100};  // Percent of slots.
  std::atomic<bool> stopping_{false};
  std::thread faulter_;
};

}  // namespace weir::ssd
