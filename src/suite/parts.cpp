#include "suite/parts.h"

#include <algorithm>
#include <array>

#include "suite/part.h"

namespace weir::suite {

namespace {

constexpr std::array kParts = {
    Part{"speed", "prefill and decode by length, depth and batch, without a network", 1, 12,
         measure_speed},
    Part{"serving", "clients and open loops up to twice the capacity: times, goodput", 1.5, 6,
         measure_serving},
    Part{"memory", "what a server takes beside its plan, and gives back", 0.5, 1.5, measure_memory},
    Part{"matrix", "experts in memory or on disk, types of keys, lengths of prompts", 0.2, 6,
         measure_matrix},
    Part{"cache", "prompts that come again: first token, share found, the same answer", 0.3, 0.5,
         measure_cache},
    Part{"bits", "answers alone and beside others, whole and streamed: equal to the bit", 0.5, 1,
         measure_bits},
    Part{"images", "pictures: first token, second turns, answers alone and beside others", 0.3, 1,
         measure_images},
    Part{"audio", "sounds: first token, second turns, answers alone and beside others", 0.2, 0.5,
         measure_audio},
    Part{"quality", "perplexity and divergence from exact arithmetic; answers bound to schemas", 1,
         4, measure_quality},
    Part{"needles", "seven digits found again in long prompts", 0.5, 15, measure_needles},
    Part{"tools", "calls of functions that are valid; answers that do not repeat themselves", 0.7,
         2, measure_tools},
    Part{"soak", "mixed load with clients that leave: errors, growth of memory", 1, 10,
         measure_soak},
};

}  // namespace

std::span<const Part> parts() { return kParts; }

Result<std::vector<const Part*>> chosen_parts(const std::string& only) {
  const std::vector<std::string> names = split_list(only);
  std::vector<const Part*> chosen;
  for (const Part& part : kParts)
    if (names.empty() || std::ranges::find(names, part.name) != names.end())
      chosen.push_back(&part);
  for (const std::string& name : names) {
    if (std::ranges::find(kParts, name, &Part::name) != kParts.end()) continue;
    std::string all;
    for (const Part& part : kParts) all.append(all.empty() ? "" : ", ").append(part.name);
    return fail(ErrorCode::kConfig, "--only: expected parts of " + all + "; found '" + name + "'");
  }
  if (chosen.empty())
    return fail(ErrorCode::kConfig, "--only: expected the name of a part; found '" + only + "'");
  return chosen;
}

}  // namespace weir::suite
