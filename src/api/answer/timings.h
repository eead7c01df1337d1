// Timings: how long a prompt and its answer have taken, as llama-server says it.
//
// Threads: a plain value; pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace weir::api {

inline double seconds(std::chrono::duration<double> duration) { return duration.count(); }
inline double milliseconds(std::chrono::duration<double> duration) {
  return 1000 * duration.count();
}

struct Timings {
  int64_t cached = 0;    // Tokens of the prompt that were in the prefix cache,
  int64_t prompt = 0;    // and those that were computed.
  double prompt_ms = 0;  // From when the engine began until the first token.
  int64_t predicted = 0;
  double predicted_ms = 0;  // From the first token on.
  int64_t drafted = 0;      // Drafts that steps have verified for the answer,
  int64_t draft_right = 0;  // and those that were right.
};

// How far the computation of a prompt is.
struct PromptProgress {
  int64_t total = 0;
  int64_t cached = 0;
  int64_t processed = 0;  // Those from the cache included.
  double time_ms = 0;     // Since the engine began.
};

// The members `"timings":{...}` and `"prompt_progress":{...}`.
void append_timings(std::string& out, const Timings& timings);
void append_progress(std::string& out, const PromptProgress& progress);

}  // namespace weir::api
