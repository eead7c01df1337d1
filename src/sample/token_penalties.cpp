#include "sample/token_penalties.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace weir::sample {

TokenPenalties::TokenPenalties(const SamplingParams& params, std::span<const int32_t> prompt,
                               int32_t vocab_size, int32_t output_max)
    : params_(params), repeats_(params.repetition_penalty != 1) {
  size_t distinct = static_cast<size_t>(output_max) + 1 + (repeats_ ? prompt.size() : 0);
  distinct = std::min(distinct, static_cast<size_t>(vocab_size));
  counts_.reserve(distinct);
  slots_.assign(std::bit_ceil(2 * distinct), -1);
  if (params.repeat_last_n > 0) {
    const auto last = static_cast<size_t>(params.repeat_last_n);
    seen_.resize(std::min(last, prompt.size() + static_cast<size_t>(output_max) + 1), -1);
    prompt = prompt.last(std::min(prompt.size(), seen_.size()));
  }
  if (repeats_)
    for (const int32_t token : prompt)
      if (token >= 0 && token < vocab_size) count(token, /*of_output=*/false);
}

TokenPenalties::Count& TokenPenalties::count_of(int32_t token) {
  const size_t mask = slots_.size() - 1;
  // Fibonacci hashing: consecutive ids land far apart.
  size_t slot = (static_cast<uint32_t>(token) * 2654435769u) & mask;
  while (slots_[slot] >= 0) {
    Count& count = counts_[static_cast<size_t>(slots_[slot])];
    if (count.token == token) return count;
    slot = (slot + 1) & mask;
  }
  CHECK(counts_.size() < counts_.capacity());
  slots_[slot] = static_cast<int32_t>(counts_.size());
  return counts_.emplace_back(Count{token, 0, 0});
}

void TokenPenalties::count(int32_t token, bool of_output) {
  if (!seen_.empty()) {
    // The place that the token takes is that of the one that leaves.
    int32_t& place = seen_[seen_count_ % seen_.size()];
    if (seen_count_ >= seen_.size()) {
      Count& leaving = count_of(place);
      --leaving.seen;
      if (seen_count_ - seen_.size() >= seen_prompt_) --leaving.in_output;
    }
    place = token;
    ++seen_count_;
    if (!of_output) ++seen_prompt_;
  }
  Count& counted = count_of(token);
  ++counted.seen;
  if (of_output) ++counted.in_output;
}

void TokenPenalties::apply(std::span<float> logits) const {
  for (const Count& count : counts_) {
    if (count.seen == 0) continue;
    float& logit = logits[static_cast<size_t>(count.token)];
    if (repeats_)
      logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (count.in_output > 0)
      logit -= params_.frequency_penalty * static_cast<float>(count.in_output) +
               params_.presence_penalty;
  }
}

}  // namespace weir::sample
