// StepCost predicts how long a step takes from the steps before it, so that prompts can be cut into
// chunks that keep steps short (--max-step-ms).
//
//   seconds = decode(rows) + a * prompt tokens + b * keys that they see
//
// decode() is a running mean of the steps without a prompt, by rows to the next power of two; a and
// b are least squares over the rest of each step with a prompt, older steps weighing less and less.
// That is what a step takes on average. What is promised is a limit, so chunks are cut for a margin
// above the average, which rises fast when a step takes longer and falls slowly: two steps of a
// hundred take longer than foreseen with it.
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

  // Small, for late in a long prompt a token's attention alone takes milliseconds; and not one,
  // for each step costs its barriers.
  static constexpr int32_t kTokensMin = 4;

 private:
  struct Rates {
    double per_token = 0, per_key = 0;
  };
  double decode_seconds(int32_t rows) const;
  Rates rates() const;
  void learn_margin(const StepWork& work, double seconds);

  static constexpr int kBuckets = 16;           // Of rows: 0, 1, 2, 3-4, 5-8, ...
  std::array<double, kBuckets> decode_{};       // 0: none seen.
  double tokens2_ = 0, cross_ = 0, keys2_ = 0;  // Sums of products of the two variables ...
  double tokens_time_ = 0, keys_time_ = 0;      // ... and of each with the time.
  double margin_ = 1.1;                         // Longest expected over average, at least 1.
};

}  // namespace weir::sched
