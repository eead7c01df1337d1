#include "sample/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sample/philox.h"

namespace weir::sample {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Below this the reciprocal would overflow the differences of logits; the result is greedy anyway.
constexpr float kTemperatureMin = 1e-5f;

// How many of the best candidates are sorted at first; a trained model's nucleus rarely has more.
constexpr size_t kFirstSelection = 256;

bool larger(const Candidate& a, const Candidate& b) {
  return a.key > b.key || (a.key == b.key && a.token < b.token);
}

bool smaller(const Candidate& a, const Candidate& b) {
  return a.key < b.key || (a.key == b.key && a.token < b.token);
}

void nan_to_minus_infinity(std::span<float> row) {
  for (float& x : row) x = x == x ? x : kMinusInfinity;
}

// The maximum of each block; lanes side by side, so that the compiler needs no reassociation.
void fill_block_maxima(std::span<const float> row, std::span<float> maxima) {
  constexpr size_t kBlock = SamplerScratch::kBlockTokens, kLanes = 16;
  for (size_t block = 0; block < maxima.size(); ++block) {
    const std::span<const float> x =
        row.subspan(block * kBlock, std::min(kBlock, row.size() - block * kBlock));
    float best = kMinusInfinity;
    if (x.size() == kBlock) {
      float lanes[kLanes];
      std::copy_n(x.begin(), kLanes, lanes);
      for (size_t i = kLanes; i < kBlock; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane)
          lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
      best = *std::max_element(lanes, lanes + kLanes);
    } else {
      for (const float value : x) best = value > best ? value : best;
    }
    maxima[block] = best;
  }
}

// Writes every token whose value is at least `threshold`; returns how many.
size_t gather(std::span<const float> row, float threshold, std::span<Candidate> out) {
  size_t n = 0;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i] >= threshold) out[n++] = {static_cast<int32_t>(i), row[i]};
  return n;
}

// The `count` largest of the row, largest first; of equals the smaller id. A value that `count`
// block maxima reach is a lower bound of what is wanted, so that one pass leaves little to sort.
// REQUIRES: no NaN in `row`.
size_t gather_largest(std::span<const float> row, size_t count, SamplerScratch& scratch) {
  const std::span<Candidate> out = scratch.candidates();
  const std::span<float> maxima = scratch.block_maxima();
  float threshold = kMinusInfinity;
  if (count <= maxima.size()) {
    fill_block_maxima(row, maxima);
    std::nth_element(maxima.begin(), maxima.begin() + static_cast<ptrdiff_t>(count) - 1,
                     maxima.end(), std::greater<>());
    threshold = maxima[count - 1];
  }
  const size_t n = gather(row, threshold, out);
  const size_t kept = std::min(count, n);
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(kept),
                    out.begin() + static_cast<ptrdiff_t>(n), larger);
  return kept;
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

// Moves to the front, in the order of `before`, the shortest run whose weights reach `mass`; at
// least one. Selects in growing portions: what lies behind the run is never sorted.
template <class Before, class Weight>
size_t take_mass(std::span<Candidate> c, double mass, Before before, Weight weight) {
  double sum = 0;
  size_t done = 0;
  for (size_t portion = kFirstSelection; done < c.size(); portion *= 4) {
    const size_t end = std::min(done + portion, c.size());
    const auto first = c.begin() + static_cast<ptrdiff_t>(done);
    const auto middle = c.begin() + static_cast<ptrdiff_t>(end);
    if (end < c.size()) std::nth_element(first, middle, c.end(), before);
    std::sort(first, middle, before);
    for (; done < end; ++done) {
      sum += weight(c[done]);
      if (sum >= mass) return done + 1;
    }
  }
  return done;
}

}  // namespace

ScoredToken score_token(std::span<float> logits, int32_t token, std::span<TokenLogprob> top,
                        const kernels::Ops& ops, SamplerScratch& scratch) {
  CHECK(scratch.candidates().size() >= logits.size());
  CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  nan_to_minus_infinity(logits);
  ScoredToken result;
  const float normaliser = normalise(logits, top, result.top_count, ops, scratch);
  result.logprob = logits[static_cast<size_t>(token)] - normaliser;
  result.rank = rank_of(logits, token);
  return result;
}

SamplerScratch::SamplerScratch(int32_t vocab_size)
    : candidates_(static_cast<size_t>(vocab_size)),
      raw_logits_(static_cast<size_t>(vocab_size)),
      block_maxima_(static_cast<size_t>((vocab_size + kBlockTokens - 1) / kBlockTokens)),
      mask_((static_cast<size_t>(vocab_size) + 63) / 64) {}

Sampler::Sampler(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
                 int32_t output_max)
    : params_(params),
      output_max_(output_max),
      repeats_(params.repetition_penalty != 1),
      counts_output_(repeats_ || params.frequency_penalty != 0 || params.presence_penalty != 0),
      top_(static_cast<size_t>(std::min(params.top_logprobs, vocab_size))) {
  if (params.bounds) past_.reserve(params.bounds->past_max());
  if (counts_output_) {
    // One more than can be emitted: the row computed after the end is sampled and dropped.
    size_t distinct = static_cast<size_t>(output_max) + 1 + (repeats_ ? prompt.size() : 0);
    distinct = std::min(distinct, static_cast<size_t>(vocab_size));
    counts_.reserve(distinct);
    slots_.assign(std::bit_ceil(2 * distinct), -1);
    if (repeats_)
      for (const int32_t token : prompt)
        if (token >= 0 && token < vocab_size) count_of(token).in_prompt = true;
  }
}

Sampler::Count& Sampler::count_of(int32_t token) {
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
  return counts_.emplace_back(Count{token, 0, false});
}

void Sampler::note(int32_t token) {
  if (counts_output_) ++count_of(token).in_output;
  if (!params_.bounds || params_.bounds->past_max() == 0) return;
  if (past_.size() == params_.bounds->past_max()) past_.erase(past_.begin());
  past_.push_back(token);
}

// Penalties, bias and masks, in place.
void Sampler::adjust(std::span<float> logits, int32_t output_index) const {
  for (const Count& count : counts_) {
    float& logit = logits[static_cast<size_t>(count.token)];
    if (repeats_)
      logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (count.in_output > 0)
      logit -= params_.frequency_penalty * static_cast<float>(count.in_output) +
               params_.presence_penalty;
  }
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
    const bool ends =
        std::ranges::find(params_.stop_token_ids, token) != params_.stop_token_ids.end();
    return ends ? Continuation::kOpen : Continuation::kStuck;
  }
  return matcher_->must_end() ? Continuation::kComplete : Continuation::kOpen;
}

// What the grammar leaves no choice about. A stop token is left to be sampled.
void Sampler::force(SampledToken& result, SamplerScratch& scratch) {
  for (bool more = true; more;) {
    const std::span<const int32_t> next = matcher_->forced_tokens();
    more = !next.empty();
    for (const int32_t token : next) {
      more = forced_count_ < kForcedTokensMax && decided_ < output_max_ &&
             std::ranges::find(params_.stop_token_ids, token) == params_.stop_token_ids.end();
      const Continuation behind = more ? go_on(token, scratch) : Continuation::kStuck;
      more = behind != Continuation::kStuck;
      if (!more) break;
      result.continuation = behind;
      forced_[forced_count_++] = token;
      ++decided_;
      note(token);
    }
  }
  result.forced = std::span(forced_).first(forced_count_);
}

// Applies the filters to a row of scaled logits whose maximum is 0. On return the candidates are
// the tokens left, and row[token] is each one's weight; their sum is not 1.
size_t Sampler::narrow(std::span<float> row, int32_t best, const kernels::Ops& ops,
                       SamplerScratch& scratch) const {
  const std::span<Candidate> all = scratch.candidates();
  const auto weight = [&](const Candidate& c) {
    return static_cast<double>(row[static_cast<size_t>(c.token)]);
  };
  const auto total = [&](std::span<const Candidate> c) {
    double sum = 0;
    for (const Candidate& candidate : c) sum += weight(candidate);
    return sum;
  };

  size_t n = 0;
  float largest = 1;  // exp(0).
  if (params_.top_k > 0 && static_cast<size_t>(params_.top_k) < row.size()) {
    n = gather_largest(row, static_cast<size_t>(params_.top_k), scratch);
    for (Candidate& c : all.first(n)) c.key = row[static_cast<size_t>(c.token)] = std::exp(c.key);
    if (params_.top_p < 1)
      n = take_mass(all.first(n), params_.top_p * total(all.first(n)), larger, weight);
  } else {
    ops.softmax(row.data(), static_cast<int32_t>(row.size()), row.data());
    largest = row[static_cast<size_t>(best)];
    // All tokens below (1 - top_p) / vocabulary together weigh less than 1 - top_p, so none is in
    // the nucleus.
    const float threshold = params_.top_p < 1 ? (1 - params_.top_p) / static_cast<float>(row.size())
                                              : params_.min_p * largest;
    n = gather(row, std::max(threshold, std::numeric_limits<float>::min()), all);
    if (params_.top_p < 1) n = take_mass(all.first(n), params_.top_p, larger, weight);
  }

  if (params_.min_p > 0) {
    const auto end =
        std::remove_if(all.begin(), all.begin() + static_cast<ptrdiff_t>(n),
                       [&](const Candidate& c) { return weight(c) < params_.min_p * largest; });
    n = static_cast<size_t>(end - all.begin());
  }
  if (params_.typical_p < 1) {  // Meister et al. 2022: closest to the entropy first.
    const double sum = total(all.first(n));
    double entropy = 0;
    for (const Candidate& c : all.first(n))
      if (const double p = weight(c) / sum; p > 0) entropy -= p * std::log(p);
    for (Candidate& c : all.first(n))
      c.key = static_cast<float>(std::abs(-std::log(weight(c) / sum) - entropy));
    n = take_mass(all.first(n), params_.typical_p * sum, smaller, weight);
  }
  return n;
}

int32_t Sampler::draw(std::span<float> logits, int32_t output_index, const kernels::Ops& ops,
                      SamplerScratch& scratch) const {
  const int32_t n = static_cast<int32_t>(logits.size());
  const int32_t best = std::clamp(ops.argmax(logits.data(), n), 0, n - 1);
  const float largest = logits[static_cast<size_t>(best)];
  if (params_.temperature < kTemperatureMin || !std::isfinite(largest)) return best;

  const float scale = 1 / params_.temperature;
  for (float& x : logits) x = (x - largest) * scale;
  const double uniform = philox_uniform(params_.seed, static_cast<uint32_t>(output_index));

  const bool filtered =
      params_.top_k > 0 || params_.top_p < 1 || params_.min_p > 0 || params_.typical_p < 1;
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

  const std::span<const Candidate> left =
      scratch.candidates().first(narrow(logits, best, ops, scratch));
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
  const bool greedy = params_.temperature < kTemperatureMin;
  if (!greedy || logprobs) nan_to_minus_infinity(logits);

  SampledToken result;
  if (output_index < decided_) {
    const auto behind = static_cast<size_t>(decided_ - output_index);
    CHECK(behind <= forced_count_);
    result.chosen.token = forced_[forced_count_ - behind];
    return result;
  }
  decided_ = output_index + 1;
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

  const bool masked = fill_mask(scratch);
  const bool stuck = masked && !forbid(logits, scratch);
  adjust(logits, output_index);
  result.chosen.token = draw(logits, output_index, ops, scratch);
  if (masked && !stuck)  // Biases and NaN may have left nothing of what is allowed.
    result.chosen.token = nearest_allowed(scratch.mask(), result.chosen.token);
  if (stuck)
    result.continuation = Continuation::kStuck;
  else if (matcher_)
    result.continuation = go_on(result.chosen.token, scratch);
  if (logprobs) result.chosen.logprob = raw[static_cast<size_t>(result.chosen.token)] - normaliser;
  note(result.chosen.token);
  // What is forced has not been looked at by the bounds.
  if (matcher_ && !logprobs && !params_.bounds && result.continuation == Continuation::kOpen)
    force(result, scratch);
  return result;
}

}  // namespace weir::sample
