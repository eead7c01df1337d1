// StorePlan: how many experts a memory holds, and the other way round; needs no store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ssd/expert_catalogue.h"

namespace weir::ssd {

// The least slots of each class, where it has as many experts: below, a layer could not compute one
// expert while it reads the next.
inline constexpr int32_t kSlotsMin = 4;

struct StorePlan {
  uint64_t memory = 0;  // Bytes given.
  int64_t slots = 0;
  int64_t experts = 0;       // Of the model.
  int32_t top_k = 0;         // Experts of a layer that one token needs.
  int32_t staging = 0;       // Buffers.
  uint64_t slot_memory = 0;  // Bytes.
  uint64_t cycle_bytes = 0;  // What one token needs.
  std::vector<int32_t> slots_of_class;

  double cycles() const {
    return static_cast<double>(slot_memory) /
           static_cast<double>(std::max<uint64_t>(cycle_bytes, 1));
  }
};

// An error says how much is needed at least.
Result<StorePlan> plan_store(const ExpertCatalogue& catalogue, uint64_t memory, int32_t top_k);

// The least memory that holds so many times what a token needs.
uint64_t memory_for_cycles(const ExpertCatalogue& catalogue, int32_t top_k, double cycles);

// Memory with which every expert finds a slot.
uint64_t whole_memory(const ExpertCatalogue& catalogue);

}  // namespace weir::ssd
