// Bundles of a model's experts: making one, the places where they are, choosing one.
//
// Threads: one, at load; pack_experts() with the team's help.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "model/streamed_bank.h"
#include "ssd/bundle_writer.h"

namespace weir::model {

inline constexpr const char* kBundleName = "weir-experts.bundle";

// Where a bundle of this checkpoint is looked for: in its folder, then in the user's cache.
std::vector<std::string> bundle_paths(const StreamedBank& bank, const ssd::SourceHash& source);

// Uses the first good bundle, if there is one. Returns a line about each that is there and is not
// used.
Result<std::vector<std::string>> choose_bundle(StreamedBank& bank);

// Memory for pack_experts(): some experts being read, unpacked and written at once.
uint64_t pack_memory(const ssd::ExpertCatalogue& catalogue);

// Writes the layers that are missing, and finishes the bundle. `progress(layers, of)` after each.
// REQUIRES: the bank is open, without a bundle.
Result<void> pack_experts(const StreamedBank& bank, ssd::BundleWriter& writer, ThreadTeam& team,
                          const std::function<void(int32_t, int32_t)>& progress = {});

}  // namespace weir::model
