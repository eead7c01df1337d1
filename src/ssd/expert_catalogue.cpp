#include "ssd/expert_catalogue.h"

#include <algorithm>
#include <utility>

namespace weir::ssd {

int32_t ExpertCatalogue::add_file(std::string path) {
  files_.push_back(std::move(path));
  return static_cast<int32_t>(files_.size()) - 1;
}

void ExpertCatalogue::add_layer(const std::array<uint64_t, kParts>& part_bytes,
                                const std::array<int32_t, kParts>& ranges) {
  Layer layer{.ranges = ranges, .first_range = ranges_.size()};
  uint64_t slot = 0;
  for (size_t part = 0; part < kParts; ++part) {
    layer.part_offset[part] = slot;
    layer.part_bytes[part] = (part_bytes[part] + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    slot += layer.part_bytes[part];
  }
  const auto same = std::ranges::find(slot_bytes_, slot);
  layer.class_index = static_cast<int32_t>(same - slot_bytes_.begin());
  if (same == slot_bytes_.end()) slot_bytes_.push_back(slot);
  layers_.push_back(layer);
}

void ExpertCatalogue::add_expert(std::span<const StoredRange> ranges) {
  Layer& layer = layers_.back();
  CHECK(std::ssize(ranges) == layer.ranges[0] + layer.ranges[1]);
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  if (in_slot_form_) return;
  uint64_t staged = 0;
  size_t next = 0;
  for (size_t part = 0; part < kParts; ++part) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < layer.ranges[part]; ++i) bytes += ranges[next++].block_bytes();
    layer.staged_bytes[part] = std::max(layer.staged_bytes[part], bytes);
    staged += layer.staged_bytes[part];
  }
  staging_bytes_ = std::max(staging_bytes_, staged);
}

std::span<const StoredRange> ExpertCatalogue::ranges(int32_t layer, int32_t expert,
                                                     int part) const {
  const Layer& l = layers_[static_cast<size_t>(layer)];
  const auto of_expert = static_cast<size_t>(l.ranges[0] + l.ranges[1]);
  const size_t begin = l.first_range + static_cast<size_t>(expert) * of_expert +
                       (part == 0 ? 0 : static_cast<size_t>(l.ranges[0]));
  return std::span(ranges_).subspan(begin,
                                    static_cast<size_t>(l.ranges[static_cast<size_t>(part)]));
}

Result<void> ExpertCatalogue::use_bundle(std::string path, std::vector<PackedExpert> experts) {
  CHECK(!packed());
  const size_t count = layers_.size() * static_cast<size_t>(experts_);
  if (experts.size() != count)
    return fail(ErrorCode::kIo, path + ": expected " + std::to_string(count) + " experts, found " +
                                    std::to_string(experts.size()));
  for (size_t i = 0; i < count; ++i) {
    const Layer& slot = layers_[i / static_cast<size_t>(experts_)];
    for (size_t part = 0; part < kParts; ++part)
      if (experts[i].bytes[part] != slot.part_bytes[part])
        return fail(ErrorCode::kIo, path + ": expected parts of " +
                                        std::to_string(slot.part_bytes[part]) + " bytes, found " +
                                        std::to_string(experts[i].bytes[part]));
  }
  bundle_file_ = add_file(std::move(path));
  packed_ = std::move(experts);
  return {};
}

StoredRange ExpertCatalogue::packed_range(int32_t layer, int32_t expert, int part) const {
  const PackedExpert& e = packed(layer, expert);
  return {.file = bundle_file_,
          .offset = e.offset + (part == 0 ? 0 : e.bytes[0]),
          .bytes = e.bytes[static_cast<size_t>(part)]};
}

uint64_t ExpertCatalogue::class_bytes(int32_t class_index) const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_)
    if (layer.class_index == class_index)
      bytes += slot_bytes(class_index) * static_cast<uint64_t>(experts_);
  return bytes;
}

uint64_t ExpertCatalogue::bank_bytes() const {
  uint64_t bytes = 0;
  for (int32_t c = 0; c < classes(); ++c) bytes += class_bytes(c);
  return bytes;
}

uint64_t ExpertCatalogue::cycle_bytes(int32_t top_k) const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_)
    bytes += slot_bytes(layer.class_index) * static_cast<uint64_t>(std::min(top_k, experts_));
  return bytes;
}

}  // namespace weir::ssd
