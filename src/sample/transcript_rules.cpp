#include "sample/transcript_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::sample {

namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Tokens [begin, end), as far as the vocabulary has them.
void forbid(std::span<float> logits, int64_t begin, int64_t end) {
  const int64_t size = std::ssize(logits);
  begin = std::clamp<int64_t>(begin, 0, size);
  end = std::clamp<int64_t>(end, begin, size);
  std::fill(logits.begin() + begin, logits.begin() + end, kImpossible);
}

void forbid(std::span<float> logits, const std::vector<int32_t>& tokens) {
  for (const int32_t token : tokens) forbid(logits, token, int64_t{token} + 1);
}

}  // namespace

bool TranscriptState::is_timestamp(int32_t token) const {
  return rules_.timestamp_begin >= 0 && token >= rules_.timestamp_begin;
}

void TranscriptState::add(int32_t token) {
  before_is_time_ = tokens_ == 0 || last_is_time_;
  last_is_time_ = is_timestamp(token);
  if (last_is_time_) latest_ = token;
  ++tokens_;
}

// After the timestamp that ends a stretch of text comes the one that begins the next, or the end;
// after that one, or the first of all, text.
void TranscriptState::keep_pairs(std::span<float> logits) const {
  if (!last_is_time_) return;
  if (before_is_time_)
    forbid(logits, rules_.timestamp_begin, std::ssize(logits));
  else
    forbid(logits, 0, rules_.end_of_text);
}

// The next stretch may begin when the last one ends, but each takes some time.
void TranscriptState::keep_order(std::span<float> logits) const {
  if (latest_ < 0) return;
  const bool begins = last_is_time_ && !before_is_time_;
  forbid(logits, rules_.timestamp_begin, int64_t{latest_} + (begins ? 0 : 1));
}

void TranscriptState::begin_with_timestamp(std::span<float> logits) const {
  forbid(logits, 0, rules_.timestamp_begin);
  if (rules_.initial_max >= 0)
    forbid(logits, int64_t{rules_.timestamp_begin} + rules_.initial_max + 1, std::ssize(logits));
}

void TranscriptState::apply(std::span<float> logits, const kernels::Ops& ops) const {
  forbid(logits, rules_.suppressed);
  if (tokens_ == 0) forbid(logits, rules_.suppressed_first);
  if (rules_.timestamp_begin < 0 || rules_.timestamp_begin >= std::ssize(logits)) return;
  forbid(logits, rules_.no_timestamps, int64_t{rules_.no_timestamps} + 1);
  keep_pairs(logits);
  keep_order(logits);
  if (tokens_ == 0) begin_with_timestamp(logits);
  const std::span<float> text = logits.first(static_cast<size_t>(rules_.timestamp_begin));
  const std::span<const float> times = logits.subspan(text.size());
  const float likeliest = text.empty() ? kImpossible : *std::ranges::max_element(text);
  // Their sum is at least the largest of them.
  if (*std::ranges::max_element(times) == kImpossible) return;
  if (ops.log_sum_exp(times.data(), static_cast<int32_t>(times.size())) > likeliest)
    std::ranges::fill(text, kImpossible);
}

}  // namespace weir::sample
