// ExpertCatalogue: where the bytes of every expert are, and how they lie in a slot of memory. Made
// once, from a checkpoint (as stored: to be unpacked); a bundle (as kernels want it) may come
// beside.
//
// An expert is read in two parts, in the order in which they are needed: what makes the hidden
// activations (gate and up), then what takes them back (down). Layers are counted among those that
// have experts.
//
// Threads: immutable once made.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "ssd/disk.h"

namespace weir::ssd {

inline constexpr int kParts = 2;

// Bytes of a file; `offset` need not be aligned.
struct StoredRange {
  int32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // What has to be read for it, in whole blocks.
  uint64_t first_block() const { return offset / kBlockBytes * kBlockBytes; }
  uint64_t block_bytes() const {
    const uint64_t end = (offset + bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    return end - first_block();
  }
};

// An expert as it lies in a slot, part after part, in whole blocks of a bundle.
struct PackedExpert {
  uint64_t offset = 0;
  std::array<uint32_t, kParts> bytes{};
  std::array<uint32_t, kParts> crc{};  // CRC32C of the parts.
};

class ExpertCatalogue {
 public:
  // What the experts of one layer have in common.
  struct Layer {
    int32_t class_index = 0;
    std::array<uint64_t, kParts> part_offset{};  // In the slot.
    std::array<uint64_t, kParts> part_bytes{};   // In the slot, in whole blocks.
    std::array<int32_t, kParts> ranges{};        // Of an expert's part.
    // In a staging buffer, where the ranges lie one after another in whole blocks; 0 where parts
    // are read into the slot itself.
    std::array<uint64_t, kParts> staged_bytes{};
    size_t first_range = 0;
  };

  // `in_slot_form`: the files hold parts as they lie in slots.
  ExpertCatalogue(int32_t experts, bool in_slot_form)
      : experts_(experts), in_slot_form_(in_slot_form) {}

  int32_t add_file(std::string path);
  // Adds a layer whose experts' ranges follow by add_expert(). Slots of one size are one class.
  void add_layer(const std::array<uint64_t, kParts>& part_bytes,
                 const std::array<int32_t, kParts>& ranges);
  // The ranges of the next expert of the layer added last: those of part 0, then of part 1.
  void add_expert(std::span<const StoredRange> ranges);

  // Experts are read from this bundle; where that fails, from their ranges. Once, after the last
  // add_expert(); refused where the parts of `experts`, layer by layer, are not those of slots.
  Result<void> use_bundle(std::string path, std::vector<PackedExpert> experts);
  bool packed() const { return !packed_.empty(); }
  const PackedExpert& packed(int32_t layer, int32_t expert) const {
    return packed_[static_cast<size_t>(layer) * static_cast<size_t>(experts_) +
                   static_cast<size_t>(expert)];
  }
  StoredRange packed_range(int32_t layer, int32_t expert, int part) const;

  int32_t layers() const { return static_cast<int32_t>(layers_.size()); }
  int32_t experts() const { return experts_; }
  // Whether parts are read into slots as they are (but for what a bundle has lost).
  bool in_slot_form() const { return in_slot_form_ || packed(); }
  const std::vector<std::string>& files() const { return files_; }
  // What most reads are of, or one of those.
  const std::string& main_file() const { return packed() ? files_.back() : files_.front(); }
  const Layer& layer(int32_t layer) const { return layers_[static_cast<size_t>(layer)]; }
  std::span<const StoredRange> ranges(int32_t layer, int32_t expert, int part) const;

  int32_t classes() const { return static_cast<int32_t>(slot_bytes_.size()); }
  uint64_t slot_bytes(int32_t class_index) const {
    return slot_bytes_[static_cast<size_t>(class_index)];
  }
  uint64_t staging_bytes() const { return staging_bytes_; }  // Of the largest expert.
  // Memory for all experts of a class, or of all.
  uint64_t class_bytes(int32_t class_index) const;
  uint64_t bank_bytes() const;
  // What one token needs at `top_k` experts a layer.
  uint64_t cycle_bytes(int32_t top_k) const;

 private:
  int32_t experts_;
  bool in_slot_form_;
  std::vector<std::string> files_;
  std::vector<Layer> layers_;
  std::vector<StoredRange> ranges_;
  std::vector<PackedExpert> packed_;  // By layer and expert; empty without a bundle.
  int32_t bundle_file_ = -1;
  std::vector<uint64_t> slot_bytes_;
  uint64_t staging_bytes_ = 0;
};

}  // namespace weir::ssd
