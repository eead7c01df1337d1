#include "sample/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sample/filters.h"
#include "sample/philox.h"

namespace weir::sample {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void nan_to_minus_infinity(std::span<float> row) {
  for (float& x : row) x = x == x ? x : kMinusInfinity;
}

// What went wrong before the head leaves no finite number in the row, so in almost every row
// that is sampled the first logit answers.
bool has_numbers(std::span<const float> row) {
  return std::ranges::any_of(row, [](float x) { return std::isfinite(x); });
}

// The log of the row's sum of exponentials; the most likely tokens' log-probabilities go to `top`.
// REQUIRES: no NaN in `row`.
float normalise(std::span<const float> row, std::span<TokenLogprob> top, size_t& top_count,
                const kernels::Ops& ops, SamplerScratch& scratch) {
  const float normaliser = ops.log_sum_exp(row.data(), static_cast<int32_t>(row.size()));
  top_count = top.empty() ? 0 : gather_largest(row, std::min(top.size(), row.size()), scratch);
  for (size_t i = 0; i < top_count; ++i)
    top[i] = {scratch.candidates()[i].token, scratch.candidates()[i].key - normaliser};
  return normaliser;
}

// How many tokens are likelier than `token`, and one. REQUIRES: no NaN in `row`.
int32_t rank_of(std::span<const float> row, int32_t token) {
  const auto at = static_cast<size_t>(token);
  const float own = row[at];
  int32_t rank = 1;
  for (const float x : row.first(at)) rank += x >= own;
  for (const float x : row.subspan(at + 1)) rank += x > own;
  return rank;
}

// `token` if its bit is set, else the first one whose bit is. REQUIRES: some bit is.
int32_t nearest_allowed(std::span<const uint64_t> mask, int32_t token) {
  if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) return token;
  size_t word = 0;
  while (mask[word] == 0) ++word;
  return static_cast<int32_t>(word * 64) + std::countr_zero(mask[word]);
}

}  // namespace

ScoredToken score_token(std::span<float> logits, int32_t token, std::span<TokenLogprob> top,
                        const kernels::Ops& ops, SamplerScratch& scratch) {
  CHECK(scratch.candidates().size() >= logits.size());
  CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  ScoredToken result;
  result.has_numbers = has_numbers(logits);
  if (!result.has_numbers) return result;
  nan_to_minus_infinity(logits);
  const float normaliser = normalise(logits, top, result.top_count, ops, scratch);
  result.logprob = logits[static_cast<size_t>(token)] - normaliser;
  result.rank = rank_of(logits, token);
  return result;
}

Sampler::Sampler(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
                 int32_t output_max)
    : params_(params),
      output_max_(output_max),
      reasoning_(params.reasoning.get()),
      top_(static_cast<size_t>(std::min(params.top_logprobs, vocab_size))) {
  if (params.bounds) past_.reserve(params.bounds->past_max());
  if (params.has_penalties()) penalties_.emplace(params, prompt, vocab_size, output_max);
  if (params.has_dry()) dry_.emplace(params, prompt, output_max);
  if (params.transcript) transcript_.emplace(*params.transcript);
}

// A token of the output, sampled or forced.
void Sampler::note(int32_t token) {
  if (penalties_) penalties_->add(token);
  if (dry_) dry_->add(token);
  reasoning_.add(token);
  if (transcript_) transcript_->add(token);
  if (!params_.bounds || params_.bounds->past_max() == 0) return;
  if (past_.size() == params_.bounds->past_max()) past_.erase(past_.begin());
  past_.push_back(token);
}

bool Sampler::is_greedy() const {
  return params_.temperature < kTemperatureMin && params_.dynatemp_range <= 0;
}

bool Sampler::stops(int32_t token) const {
  return std::ranges::find(params_.stop_token_ids, token) != params_.stop_token_ids.end();
}

// Penalties, bias and masks, in place.
void Sampler::adjust(std::span<float> logits, int32_t output_index, SamplerScratch& scratch) {
  if (penalties_) penalties_->apply(logits);
  if (dry_) dry_->apply(logits, scratch);
  const auto in_vocabulary = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < logits.size();
  };
  for (const auto& [token, bias] : params_.logit_bias)
    if (in_vocabulary(token)) logits[static_cast<size_t>(token)] += bias;
  if (output_index < params_.min_tokens)
    for (const int32_t token : params_.stop_token_ids)
      if (in_vocabulary(token)) logits[static_cast<size_t>(token)] = kMinusInfinity;
  if (params_.bounds) params_.bounds->ban(logits, past_);
}

bool Sampler::fill_mask(SamplerScratch& scratch) const {
  const std::span<uint64_t> mask = scratch.mask();
  const bool bounded = params_.bounds && params_.bounds->has_allowed();
  if (!matcher_ && !bounded) return false;
  if (matcher_)
    matcher_->fill_mask(mask, scratch.match());
  else
    std::ranges::fill(mask, ~uint64_t{0});
  if (bounded) params_.bounds->intersect(mask);
  // An end that the form has reached is no token of the text.
  if (matcher_ && matcher_->may_end())
    for (const int32_t token : params_.stop_token_ids)
      if (token >= 0 && static_cast<size_t>(token) / 64 < mask.size())
        mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  return true;
}

bool Sampler::forbid(std::span<float> logits, SamplerScratch& scratch) const {
  const std::span<const uint64_t> mask = scratch.mask();
  bool left = false;
  for (size_t word = 0; word * 64 < logits.size(); ++word) {
    uint64_t bits = ~mask[word];
    const size_t begin = word * 64, count = std::min<size_t>(64, logits.size() - begin);
    if (count < 64) bits &= (uint64_t{1} << count) - 1;
    left = left || static_cast<size_t>(std::popcount(bits)) < count;
    if (bits == ~uint64_t{0}) {
      std::fill_n(logits.begin() + static_cast<ptrdiff_t>(begin), 64, kMinusInfinity);
      continue;
    }
    for (; bits != 0; bits &= bits - 1)
      logits[begin + static_cast<size_t>(std::countr_zero(bits))] = kMinusInfinity;
  }
  return left;
}

Continuation Sampler::go_on(int32_t token, SamplerScratch& scratch) const {
  if (!matcher_->accept(token, scratch.match())) {
    // An end token is none of the grammar's. It ends the output whatever is said here.
    return stops(token) ? Continuation::kOpen : Continuation::kStuck;
  }
  return matcher_->must_end() ? Continuation::kComplete : Continuation::kOpen;
}

// False: it cannot follow, or there is no room. A stop token is left to be sampled.
bool Sampler::force_token(int32_t token, SampledToken& result, SamplerScratch& scratch) {
  if (forced_count_ == kForcedTokensMax || decided_ >= output_max_ || stops(token)) return false;
  const Continuation after = matcher_ ? go_on(token, scratch) : Continuation::kOpen;
  if (after == Continuation::kStuck) return false;
  result.continuation = after;
  forced_[forced_count_++] = token;
  ++decided_;
  note(token);
  return true;
}

// What the end of the reasoning's budget, or the grammar, leaves no choice about.
void Sampler::force(SampledToken& result, SamplerScratch& scratch) {
  for (bool more = true; more;) {
    const std::span<const int32_t> closing = reasoning_.closing();
    if (!closing.empty()) {
      more = force_token(closing.front(), result, scratch);
      continue;
    }
    // What a grammar forces has not been looked at by the bounds.
    const std::span<const int32_t> next =
        matcher_ && !params_.bounds ? matcher_->forced_tokens() : std::span<const int32_t>();
    more = !next.empty();
    for (size_t i = 0; i < next.size() && more && reasoning_.closing().empty(); ++i)
      more = force_token(next[i], result, scratch);
  }
  result.forced = std::span(forced_).first(forced_count_);
}

int32_t Sampler::draw(std::span<float> logits, int32_t output_index, const kernels::Ops& ops,
                      SamplerScratch& scratch) const {
  const int32_t n = static_cast<int32_t>(logits.size());
  const int32_t best = std::clamp(ops.argmax(logits.data(), n), 0, n - 1);
  const float largest = logits[static_cast<size_t>(best)];
  if (is_greedy() || !std::isfinite(largest)) return best;

  if (params_.top_n_sigma > 0) keep_within_sigmas(logits, largest, params_.top_n_sigma);
  const bool temperature_last = params_.has_xtc() || params_.dynatemp_range > 0;
  const float scale = temperature_last ? 1 : 1 / params_.temperature;
  for (float& x : logits) x = (x - largest) * scale;
  const double uniform = philox_uniform(params_.seed, static_cast<uint32_t>(output_index));

  const bool filtered = params_.top_k > 0 || params_.top_p < 1 || params_.min_p > 0 ||
                        params_.typical_p < 1 || temperature_last;
  if (!filtered) {
    ops.softmax(logits.data(), n, logits.data());
    double sum = 0;
    for (const float p : logits) sum += p;
    double rest = uniform * sum;
    for (int32_t token = 0; token < n; ++token) {
      const double p = logits[static_cast<size_t>(token)];
      if (rest < p) return token;
      rest -= p;
    }
    return best;  // Rounding left a rest; the last token may have no weight at all.
  }

  std::span<Candidate> left =
      scratch.candidates().first(narrow(params_, logits, best, ops, scratch));
  const auto position = static_cast<uint32_t>(output_index);
  if (params_.has_xtc() &&
      philox_uniform(params_.seed, position, kXtcStream) < double{params_.xtc_probability})
    left = left.first(exclude_top_choices(left, logits, params_.xtc_threshold));
  if (temperature_last) reheat(left, logits, dynamic_temperature(params_, left, logits));
  double sum = 0;
  for (const Candidate& c : left) sum += logits[static_cast<size_t>(c.token)];
  double rest = uniform * sum;
  for (const Candidate& c : left) {
    const double weight = logits[static_cast<size_t>(c.token)];
    if (rest < weight) return c.token;
    rest -= weight;
  }
  return left.empty() ? best : left.front().token;
}

SampledToken Sampler::sample(std::span<float> logits, int32_t output_index, bool want_logprob,
                             const kernels::Ops& ops, SamplerScratch& scratch) {
  CHECK(scratch.candidates().size() >= logits.size());
  const bool logprobs = want_logprob || !top_.empty();
  SampledToken result;
  if (output_index < decided_) {
    const auto from_end = static_cast<size_t>(decided_ - output_index);
    CHECK(from_end <= forced_count_);
    result.chosen.token = forced_[forced_count_ - from_end];
    return result;
  }
  decided_ = output_index + 1;
  if (!has_numbers(logits)) {
    result.chosen.token = 0;  // The next step, which is planned already, may look it up.
    result.continuation = Continuation::kNoNumbers;
    return result;
  }
  if (!is_greedy() || logprobs || transcript_) nan_to_minus_infinity(logits);
  if (transcript_) transcript_->apply(logits, ops);
  forced_count_ = 0;
  float normaliser = 0;
  const std::span<float> raw = scratch.raw_logits().first(logits.size());
  if (logprobs) {
    std::copy(logits.begin(), logits.end(), raw.begin());
    size_t count = 0;
    const bool chosen_ones = !params_.reported.empty();
    normaliser = normalise(raw, chosen_ones ? std::span<TokenLogprob>() : std::span(top_), count,
                           ops, scratch);
    for (; chosen_ones && count < top_.size(); ++count) {
      const int32_t token = params_.reported[count];
      top_[count] = {token, raw[static_cast<size_t>(token)] - normaliser};
    }
    result.top = std::span(top_).first(count);
  }

  if (!take_closing(result, scratch)) choose(result, logits, output_index, ops, scratch);
  if (logprobs) result.chosen.logprob = raw[static_cast<size_t>(result.chosen.token)] - normaliser;
  note(result.chosen.token);
  if (!logprobs && result.continuation == Continuation::kOpen) force(result, scratch);
  return result;
}

// The token comes without a choice where the reasoning has to end.
bool Sampler::take_closing(SampledToken& result, SamplerScratch& scratch) {
  const std::span<const int32_t> closing = reasoning_.closing();
  if (closing.empty()) return false;
  result.chosen.token = closing.front();
  result.continuation = matcher_ ? go_on(result.chosen.token, scratch) : Continuation::kOpen;
  if (result.continuation != Continuation::kStuck) return true;
  reasoning_.give_up();
  return false;
}

void Sampler::choose(SampledToken& result, std::span<float> logits, int32_t output_index,
                     const kernels::Ops& ops, SamplerScratch& scratch) {
  const bool masked = fill_mask(scratch);
  const bool stuck = masked && !forbid(logits, scratch);
  adjust(logits, output_index, scratch);
  result.chosen.token = draw(logits, output_index, ops, scratch);
  if (masked && !stuck)  // Biases and NaN may have left nothing of what is allowed.
    result.chosen.token = nearest_allowed(scratch.mask(), result.chosen.token);
  if (stuck)
    result.continuation = Continuation::kStuck;
  else if (matcher_)
    result.continuation = go_on(result.chosen.token, scratch);
}

}  // namespace weir::sample
