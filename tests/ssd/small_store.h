// SmallStore: an ExpertStore over a file of its own, of experts as kernels want them or with a
// bundle beside, and a leader's turn through a layer that looks at every byte it is given.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "ssd/expert_store.h"
#include "ssd/temp_file.h"

namespace weir::ssd {

class SmallStore {
 public:
  static constexpr int32_t kLayers = 3, kExperts = 8, kTopK = 2;
  static constexpr uint64_t kPartBytes = 4 * kBlockBytes, kSeed = 5;
  static constexpr uint64_t kExpertBytes = kParts * kPartBytes;
  static constexpr uint64_t kFileBytes = kLayers * kExperts * kExpertBytes;

  // With memory for so many experts (and buffers, with a bundle).
  SmallStore(std::unique_ptr<Disk> disk, int32_t slots, bool bundle = false)
      : path_(folder_.write("experts", kSeed, kFileBytes)),
        catalogue_(kExperts, /*in_slot_form=*/!bundle) {
    const int32_t file = catalogue_.add_file(path_);
    uint64_t offset = 0;
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      catalogue_.add_layer({kPartBytes, kPartBytes}, {1, 1});
      for (int32_t expert = 0; expert < kExperts; ++expert, offset += kExpertBytes)
        catalogue_.add_expert(std::vector<StoredRange>{{file, offset, kPartBytes},
                                                       {file, offset + kPartBytes, kPartBytes}});
    }
    if (bundle) use_bundle();
    auto store = ExpertStore::create(catalogue_, std::move(disk),
                                     {.memory = slots * kExpertBytes,
                                      .top_k = kTopK,
                                      .sequences_max = 4,
                                      .prefetch = PrefetchMode::kOff});
    EXPECT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    // All of the memory has come.
    do store_->begin_step(0), store_->end_step();
    while (store_->stats().slots_usable.value() < static_cast<double>(store_->plan().slots));
  }

  // Each row generates a token in all layers, with these experts. Returns why the first expert
  // failed; empty: none did, and all bytes were the file's.
  std::string step(const std::vector<std::vector<int32_t>>& rows) {
    store_->begin_step(static_cast<int32_t>(rows.size()));
    std::string failure;
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<ExpertDemand> demands;
      std::vector<RoutedRow> routed;
      for (size_t row = 0; row < rows.size(); ++row) {
        routed.push_back({.sequence = static_cast<int32_t>(row), .experts = rows[row].data()});
        for (const int32_t expert : rows[row]) {
          const auto at = std::ranges::lower_bound(demands, expert, {}, &ExpertDemand::expert);
          if (at == demands.end() || at->expert != expert)
            demands.insert(at, {.expert = expert, .generated_rows = 1});
          else
            ++at->generated_rows;
        }
      }
      const std::string why = run_layer(layer, demands, routed);
      if (failure.empty()) failure = why;
    }
    store_->end_step();
    return failure;
  }

  ExpertStore& store() { return *store_; }
  const std::string& path() const { return path_; }
  const std::string& bundle_path() const { return bundle_path_; }
  const TempFolder& folder() const { return folder_; }

 private:
  // The same bytes once more, with checksums.
  void use_bundle() {
    bundle_path_ = folder_.write("bundle", kSeed, kFileBytes);
    std::vector<PackedExpert> packed;
    std::vector<std::byte> part(kPartBytes);
    for (uint64_t offset = 0; offset < kFileBytes; offset += kExpertBytes) {
      PackedExpert& expert = packed.emplace_back();
      expert.offset = offset;
      for (size_t p = 0; p < kParts; ++p) {
        fill_words(kSeed, offset + p * kPartBytes, part);
        expert.bytes[p] = kPartBytes;
        expert.crc[p] = crc32c(part);
      }
    }
    const Result<void> used = catalogue_.use_bundle(bundle_path_, std::move(packed));
    EXPECT_TRUE(used) << used.error().message;
  }
  std::string run_layer(int32_t layer, const std::vector<ExpertDemand>& demands,
                        const std::vector<RoutedRow>& rows) {
    std::string failure;
    ExpertWave wave = store_->make_wave();
    store_->begin_layer(layer, demands, rows);
    do {
      store_->next_wave(wave);
      for (const ExpertWave::Unpack& part : wave.unpack)
        std::memcpy(part.slot, part.staged, kPartBytes);
      for (const ExpertWave::Check& part : wave.check) *part.found = crc32c(part.bytes);
      for (const int32_t demand : wave.failed) failure = store_->failure_of(demand);
      for (const int32_t demand : wave.down) {
        const int32_t expert = demands[static_cast<size_t>(demand)].expert;
        EXPECT_TRUE(has_words(kSeed,
                              static_cast<uint64_t>(layer * kExperts + expert) * kExpertBytes,
                              {store_->memory_of(demand), kExpertBytes}))
            << "layer " << layer << " expert " << expert;
      }
    } while (!wave.last);
    store_->end_layer();
    return failure;
  }

  TempFolder folder_;
  std::string path_;
  std::string bundle_path_;
  ExpertCatalogue catalogue_;
  std::unique_ptr<ExpertStore> store_;
};

}  // namespace weir::ssd
