// GenerationDefaults: how tokens are sampled where a request does not say. By itself the server
// samples as llama-server does; what the model's makers name in generation_config.json overrules
// that, and the command line overrules them.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "card/generation_settings.h"
#include "sample/sampling_params.h"

namespace weir::api {

// Where a default comes from, as the log says it.
inline constexpr std::string_view kFromServer = "default";
inline constexpr std::string_view kFromCheckpoint = "generation_config.json";
inline constexpr std::string_view kFromCommandLine = "command line";

struct GenerationDefaults {
  GenerationDefaults() {
    // llama-server's. A small model at temperature 1 and with its whole vocabulary says noise.
    sampling.temperature = 0.8f;
    sampling.top_k = 40;
    sampling.top_p = 0.95f;
    sampling.min_p = 0.05f;
  }

  // `name`: of sampling_numbers().
  void set(std::string_view name, double value, std::string_view source);

  sample::SamplingParams sampling;
  // By name of sampling_numbers(); those that are not here are the server's.
  std::map<std::string_view, std::string_view> sources;
  // End-of-sequence tokens; empty if the files name none.
  std::vector<int32_t> eos_ids;
};

// The server's, overruled by what the model's makers want.
GenerationDefaults generation_defaults(const card::GenerationSettings& made);

}  // namespace weir::api
