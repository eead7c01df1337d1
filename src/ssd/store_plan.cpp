#include "ssd/store_plan.h"

#include <cmath>
#include <string>

namespace weir::ssd {

namespace {

// Staging buffers: as many reads as keep a disk busy, at most a sixteenth of the memory.
constexpr int32_t kStagingMin = 2, kStagingMax = 32;
constexpr uint64_t kStagingShare = 16;

// Rounded up, so that what a message asks for is enough.
std::string size_text(uint64_t bytes) {
  constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
  return bytes < 16 * kMiB ? std::to_string((bytes + kKiB - 1) / kKiB) + " KiB"
                           : std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
}

// As many as `memory` holds. With a bundle they are for what it has lost.
int32_t staging_buffers(const ExpertCatalogue& catalogue, uint64_t memory) {
  if (catalogue.packed()) return kStagingMin;
  return static_cast<int32_t>(
      std::clamp<uint64_t>(memory / catalogue.staging_bytes(), kStagingMin, kStagingMax));
}

}  // namespace

Result<StorePlan> plan_store(const ExpertCatalogue& catalogue, uint64_t memory, int32_t top_k) {
  StorePlan plan;
  plan.memory = memory;
  plan.top_k = top_k;
  plan.experts = int64_t{catalogue.layers()} * catalogue.experts();
  plan.cycle_bytes = catalogue.cycle_bytes(top_k);
  const uint64_t staged = catalogue.staging_bytes();
  if (staged > 0) plan.staging = staging_buffers(catalogue, memory / kStagingShare);
  const uint64_t staging_memory = staged * static_cast<uint64_t>(plan.staging);
  uint64_t least = staging_memory;
  for (int32_t c = 0; c < catalogue.classes(); ++c)
    least += catalogue.slot_bytes(c) * static_cast<uint64_t>(kSlotsMin);
  if (memory < least)
    return fail(ErrorCode::kCapacity, "expert memory: expected at least " + size_text(least) +
                                          " (" + std::to_string(kSlotsMin) +
                                          " experts of each size, and buffers), found " +
                                          size_text(memory) + "; raise --expert-memory");
  const uint64_t bank = catalogue.bank_bytes();
  for (int32_t c = 0; c < catalogue.classes(); ++c) {
    // Shares in proportion to what the classes hold; no class needs more slots than experts.
    const double share = static_cast<double>(catalogue.class_bytes(c)) / static_cast<double>(bank);
    const auto bytes = static_cast<uint64_t>(static_cast<double>(memory - least) * share);
    const uint64_t slots = std::min(bytes / catalogue.slot_bytes(c) + kSlotsMin,
                                    catalogue.class_bytes(c) / catalogue.slot_bytes(c));
    plan.slots_of_class.push_back(static_cast<int32_t>(slots));
    plan.slots += static_cast<int64_t>(slots);
    plan.slot_memory += slots * catalogue.slot_bytes(c);
  }
  return plan;
}

uint64_t memory_for_cycles(const ExpertCatalogue& catalogue, int32_t top_k, double cycles) {
  const auto slots =
      static_cast<uint64_t>(std::ceil(cycles * static_cast<double>(catalogue.cycle_bytes(top_k))));
  // Buffers take a share of what they are part of.
  const uint64_t staged = catalogue.staging_bytes();
  uint64_t buffers = 0;
  if (staged > 0)
    buffers = static_cast<uint64_t>(staging_buffers(catalogue, slots / (kStagingShare - 1)));
  return slots + buffers * staged;
}

uint64_t whole_memory(const ExpertCatalogue& catalogue) {
  const uint64_t staged = catalogue.staging_bytes();
  if (staged == 0) return catalogue.bank_bytes();
  return catalogue.bank_bytes() +
         staged * static_cast<uint64_t>(staging_buffers(catalogue, UINT64_MAX));
}

}  // namespace weir::ssd
