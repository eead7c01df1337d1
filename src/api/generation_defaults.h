// GenerationDefaults: how a model's makers want it sampled, from generation_config.json and
// config.json; what a request leaves out. The command line may change them before the server
// starts.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace weir::api {

struct GenerationDefaults {
  float temperature = 1;  // 0: greedy (`do_sample: false` and nothing else said).
  int32_t top_k = 0;      // 0: all.
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;
  // End-of-sequence tokens; empty if the files name none.
  std::vector<int32_t> eos_ids;
};

// A missing file is no error, a malformed one is (kConfig, naming file and key). eos_token_id comes
// from generation_config.json, else from config.json (also from its text_config).
Result<GenerationDefaults> read_generation_defaults(const ModelFiles& files);

}  // namespace weir::api
