#include "sample/dry_penalty.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/sampler_scratch.h"

namespace weir::sample {

namespace {

// Of `tokens`, those at the end that are looked at.
size_t window_length(const SamplingParams& params, size_t tokens) {
  if (params.dry_penalty_last_n < 0) return tokens;
  return std::min(tokens, static_cast<size_t>(params.dry_penalty_last_n));
}

// The row computed after the end is sampled and dropped: one more than can be emitted.
size_t history_length(const SamplingParams& params, size_t prompt_tokens, int32_t output_max) {
  return window_length(params, prompt_tokens) + static_cast<size_t>(output_max) + 1;
}

}  // namespace

DryPenalty::DryPenalty(const SamplingParams& params, std::span<const int32_t> prompt,
                       int32_t output_max)
    : params_(params) {
  const size_t kept = window_length(params, prompt.size());
  const size_t length = history_length(params, prompt.size(), output_max);
  history_.reserve(length);
  history_.assign(prompt.end() - static_cast<ptrdiff_t>(kept), prompt.end());
  agreeing_.resize(window_length(params, length));
  if (params.dry_breakers) breaker_ = params.dry_breakers->find_last(history_);
}

void DryPenalty::add(int32_t token) {
  history_.push_back(token);
  if (params_.dry_breakers) breaker_ = params_.dry_breakers->find_next(history_, breaker_);
}

// The Z algorithm (Gusfield 1997, 1.4) over the window read backwards: linear, however long the
// repetitions are.
void DryPenalty::match(std::span<const int32_t> window) {
  const size_t n = window.size();
  const auto at = [&](size_t i) { return window[n - 1 - i]; };
  // The piece [begin, end) that agrees with the beginning and ends last.
  size_t begin = 0, end = 0;
  for (size_t i = 1; i < n; ++i) {
    size_t length = 0;
    if (i < end) length = std::min(end - i, static_cast<size_t>(agreeing_[i - begin]));
    while (i + length < n && at(length) == at(i + length)) ++length;
    agreeing_[i] = static_cast<int32_t>(length);
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
  }
}

float DryPenalty::penalty(int32_t length) const {
  const double power = std::pow(static_cast<double>(params_.dry_base),
                                static_cast<double>(length - params_.dry_allowed_length));
  const double penalty = static_cast<double>(params_.dry_multiplier) * power;
  return static_cast<float>(
      std::min(penalty, static_cast<double>(std::numeric_limits<float>::max())));
}

void DryPenalty::apply(std::span<float> logits, SamplerScratch& scratch) {
  const auto window =
      std::span<const int32_t>(history_).last(window_length(params_, history_.size()));
  // How many of the last tokens no breaker is part of.
  size_t free = window.size();
  if (breaker_ && breaker_->first + window.size() >= history_.size())
    free = history_.size() - 1 - breaker_->last;
  const auto allowed = static_cast<size_t>(params_.dry_allowed_length);
  if (free < allowed || window.size() < 2) return;
  match(window);
  // What would go on with the repetition that ends `i` before the last token, and how long that
  // repetition is.
  const auto each = [&](auto&& visit) {
    for (size_t i = 1; i < window.size(); ++i) {
      const size_t length = std::min(static_cast<size_t>(agreeing_[i]), free);
      const int32_t next = window[window.size() - i];
      if (length >= allowed && next >= 0 && static_cast<size_t>(next) < logits.size())
        visit(static_cast<size_t>(next), static_cast<int32_t>(length));
    }
  };
  const std::span<Candidate> by_token = scratch.candidates();
  each([&](size_t token, int32_t) { by_token[token].token = -1; });
  each([&](size_t token, int32_t length) {
    by_token[token].token = std::max(by_token[token].token, length);
  });
  each([&](size_t token, int32_t) {
    const int32_t length = std::exchange(by_token[token].token, -1);
    if (length >= 0) logits[token] -= penalty(length);
  });
}

}  // namespace weir::sample
