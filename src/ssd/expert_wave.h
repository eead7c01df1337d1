// ExpertWave: what can be done for a layer with the experts that are there by now, and what has to
// be done to some before. Filled by ExpertStore::next_wave().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::ssd {

struct ExpertWave {
  // A part as stored, to be put into its slot's form before anything of this wave is computed.
  struct Unpack {
    int32_t layer = 0;
    int32_t expert = 0;
    int32_t part = 0;
    const std::byte* staged = nullptr;
    std::byte* slot = nullptr;
  };
  // A part of a bundle of which it is not known yet whether it is what was written: its CRC32C is
  // to be stored in `found`. Of use from the next wave on.
  struct Check {
    std::span<const std::byte> bytes;
    uint32_t* found = nullptr;
  };
  std::vector<Unpack> unpack;
  std::vector<Check> check;
  // Indices of this layer's demands.
  std::vector<int32_t> activate;  // Whose first part is there.
  std::vector<int32_t> down;      // Activated, now or before, and whose second part is there.
  std::vector<int32_t> failed;    // Cannot be read.
  bool first = false;
  bool last = false;

  // There is something to do.
  bool has_work() const {
    return !unpack.empty() || !check.empty() || !activate.empty() || !down.empty() ||
           !failed.empty();
  }
  void clear() {
    unpack.clear();
    check.clear();
    activate.clear();
    down.clear();
    failed.clear();
    first = last = false;
  }
};

}  // namespace weir::ssd
