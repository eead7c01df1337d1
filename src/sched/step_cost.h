// StepCost predicts how long a step takes from the steps before it, so that prompts can be cut into
// chunks that keep steps short (--max-step-ms).
//
//   seconds = decode(rows) + a * prompt tokens + b * keys that they see
//
// decode() is a running mean of the steps without a prompt, by rows to the next power of two; a and
// b are least squares over the rest of each step with a prompt, older steps weighing less and less.
//
// Threads: owned by the engine thread.
#pragma once

#include <array>
#include <cstdint>

namespace weir::sched {

struct StepWork {
  int32_t decode_rows = 0;
  int32_t prompt_tokens = 0;
  double keys_seen = 0;  // By all prompt tokens, each those before it and itself.
};

class StepCost {
 public:
  // How a chunk of `tokens` prompt tokens from `position` on sees keys.
  static double keys_seen(int32_t position, int32_t tokens);

  void observe(const StepWork& work, double seconds);

  // The longest chunk of a prompt from `position` on that is expected to keep a step with
  // `decode_rows` within `seconds`. At least kTokensMin, for prompts must get on: the limit may be
  // less than decoding alone takes.
  int32_t tokens_within(double seconds, int32_t decode_rows, int32_t position) const;

  // Below this the weights are read for too few tokens to be worth it.
  static constexpr int32_t kTokensMin = 16;

 private:
  double decode_seconds(int32_t rows) const;

  static constexpr int kBuckets = 16;           // Of rows: 0, 1, 2, 3-4, 5-8, ...
  std::array<double, kBuckets> decode_{};       // 0: none seen.
  double tokens2_ = 0, cross_ = 0, keys2_ = 0;  // Sums of products of the two variables ...
  double tokens_time_ = 0, keys_time_ = 0;      // ... and of each with the time.
};

}  // namespace weir::sched
