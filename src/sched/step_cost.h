// StepCost predicts how long a step takes from the steps before it, so that prompts can be cut into
// chunks that keep steps short (--max-step-ms).
//
//   seconds = decode(rows) + a + b * prompt tokens + c * keys that they see
//
// decode() is a running mean of the steps without a prompt, by rows to the next power of two; a (a
// prompt at all: weights are widened for it), b and c are least squares over the rest of each step
// with a prompt, none negative. Older steps weigh less and less, but never nothing: chunks of one
// size, which is what a limit makes of prompts, do not tell a from b.
// That is what a step takes on average. What is promised is a limit, so chunks are cut for a margin
// above the average, which rises fast when a step takes longer and falls slowly: two steps of a
// hundred take longer than foreseen with it.
//
// Threads: owned by the engine thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::sched {

struct StepLoad {
  int32_t decode_rows = 0;
  int32_t prompt_tokens = 0;
  double keys_seen = 0;  // By all prompt tokens, each those before it and itself.
};

class StepCost {
 public:
  // How a chunk of `tokens` prompt tokens from `position` on sees keys.
  static double keys_seen(int32_t position, int32_t tokens);

  void observe(const StepLoad& load, double seconds);

  // The longest chunk of a prompt from `position` on that is expected to keep a step with
  // `decode_rows` within `seconds`. At least kTokensMin, for prompts must get on: the limit may be
  // less than decoding alone takes.
  int32_t tokens_within(double seconds, int32_t decode_rows, int32_t position) const;

  // The longest chunk from `position` on that is expected to double at most what a step with
  // `decode_rows` takes; at least kTokensMin.
  int32_t tokens_beside(int32_t decode_rows, int32_t position) const {
    return tokens_within(2 * decode_seconds(decode_rows), decode_rows, position);
  }

  // The rows of one tile: what a prompt costs for being there, its weights widened and all of its
  // keys read, is more than 16 tokens add to it, so that fewer would only make it slower.
  static constexpr int32_t kTokensMin = 16;

 private:
  // What a prompt adds to a step: for being there, a token, a key seen.
  static constexpr size_t kTerms = 3;
  using Terms = std::array<double, kTerms>;
  // Sums over steps of products of the terms' factors with each other and with the time.
  struct Moments {
    std::array<Terms, kTerms> products{};
    Terms times{};
    void add(const Terms& factors, double seconds, double kept);
  };

  double decode_seconds(int32_t rows) const;
  Terms rates() const;
  void learn_margin(const StepLoad& load, double seconds);

  static constexpr int kBuckets = 16;      // Of rows: 0, 1, 2, 3-4, 5-8, ...
  std::array<double, kBuckets> decode_{};  // 0: none seen.
  Moments recent_, old_;
  bool learnt_ = false;
  double margin_ = 1.1;  // Longest expected over average, at least 1.
};

}  // namespace weir::sched
