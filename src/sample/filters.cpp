#include "sample/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace weir::sample {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// How many of the best candidates are sorted at first; a trained model's nucleus rarely has more.
constexpr size_t kFirstSelection = 256;

bool larger(const Candidate& a, const Candidate& b) {
  return a.key > b.key || (a.key == b.key && a.token < b.token);
}

bool smaller(const Candidate& a, const Candidate& b) {
  return a.key < b.key || (a.key == b.key && a.token < b.token);
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

// Moves to the front, in the order of `before`, the shortest run whose weights reach `mass`; at
// least one. Selects in growing portions: what lies after the run is never sorted.
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

double weight_of(const Candidate& candidate, std::span<const float> row) {
  return static_cast<double>(row[static_cast<size_t>(candidate.token)]);
}

double total_of(std::span<const Candidate> candidates, std::span<const float> row) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += weight_of(candidate, row);
  return sum;
}

double entropy_of(std::span<const Candidate> candidates, std::span<const float> row, double sum) {
  double entropy = 0;
  for (const Candidate& candidate : candidates)
    if (const double p = weight_of(candidate, row) / sum; p > 0) entropy -= p * std::log(p);
  return entropy;
}

}  // namespace

// A value that `count` block maxima reach is a lower bound of what is wanted, so that one pass
// leaves little to sort.
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

// Distances from the maximum are summed, which are small numbers, in lanes, whose order the row
// alone fixes.
void keep_within_sigmas(std::span<float> row, float largest, float sigmas) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> count{}, sum{}, squares{};
  for (size_t i = 0; i < row.size(); ++i) {
    const bool counts = row[i] > kMinusInfinity;
    const double distance = counts ? double{largest} - double{row[i]} : 0;
    count[i % kLanes] += counts ? 1 : 0;
    sum[i % kLanes] += distance;
    squares[i % kLanes] += distance * distance;
  }
  for (size_t lane = 1; lane < kLanes; ++lane) {
    count[0] += count[lane];
    sum[0] += sum[lane];
    squares[0] += squares[lane];
  }
  const double mean = sum[0] / count[0];
  const double deviation = std::sqrt(std::max(squares[0] / count[0] - mean * mean, 0.0));
  const auto limit = static_cast<float>(double{largest} - double{sigmas} * deviation);
  for (float& x : row) x = x < limit ? kMinusInfinity : x;
}

size_t narrow(const SamplingParams& params, std::span<float> row, int32_t best,
              const kernels::Ops& ops, SamplerScratch& scratch) {
  const std::span<Candidate> all = scratch.candidates();
  const auto weight = [&](const Candidate& c) { return weight_of(c, row); };
  size_t n = 0;
  float largest = 1;  // exp(0).
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < row.size()) {
    n = gather_largest(row, static_cast<size_t>(params.top_k), scratch);
    for (Candidate& c : all.first(n)) c.key = row[static_cast<size_t>(c.token)] = std::exp(c.key);
    if (params.top_p < 1)
      n = take_mass(all.first(n), params.top_p * total_of(all.first(n), row), larger, weight);
  } else {
    ops.softmax(row.data(), static_cast<int32_t>(row.size()), row.data());
    largest = row[static_cast<size_t>(best)];
    // All tokens below (1 - top_p) / vocabulary together weigh less than 1 - top_p, so none is in
    // the nucleus.
    const float threshold = params.top_p < 1 ? (1 - params.top_p) / static_cast<float>(row.size())
                                             : params.min_p * largest;
    n = gather(row, std::max(threshold, std::numeric_limits<float>::min()), all);
    if (params.top_p < 1) n = take_mass(all.first(n), params.top_p, larger, weight);
  }

  if (params.min_p > 0) {
    const auto end =
        std::remove_if(all.begin(), all.begin() + static_cast<ptrdiff_t>(n),
                       [&](const Candidate& c) { return weight(c) < params.min_p * largest; });
    n = static_cast<size_t>(end - all.begin());
  }
  if (params.typical_p < 1) {  // Meister et al. 2022: closest to the entropy first.
    const double sum = total_of(all.first(n), row);
    const double entropy = entropy_of(all.first(n), row, sum);
    for (Candidate& c : all.first(n))
      c.key = static_cast<float>(std::abs(-std::log(weight(c) / sum) - entropy));
    n = take_mass(all.first(n), params.typical_p * sum, smaller, weight);
  }
  return n;
}

size_t exclude_top_choices(std::span<Candidate> candidates, std::span<const float> row,
                           float threshold) {
  const double mass = double{threshold} * total_of(candidates, row);
  const auto ranks_behind = [&](const Candidate& a, const Candidate& b) {
    const double x = weight_of(a, row), y = weight_of(b, row);
    return x < y || (x == y && a.token > b.token);
  };
  const Candidate* last = nullptr;
  for (const Candidate& c : candidates)
    if (weight_of(c, row) >= mass && (!last || ranks_behind(c, *last))) last = &c;
  if (!last) return candidates.size();
  const int32_t kept = last->token;
  const auto end = std::remove_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.token != kept && weight_of(c, row) >= mass;
  });
  return static_cast<size_t>(end - candidates.begin());
}

float dynamic_temperature(const SamplingParams& params, std::span<const Candidate> candidates,
                          std::span<const float> row) {
  if (params.dynatemp_range <= 0 || candidates.size() < 2) return params.temperature;
  const double lowest = std::max(params.temperature - params.dynatemp_range, 0.0f);
  const double highest = params.temperature + params.dynatemp_range;
  const double entropy = entropy_of(candidates, row, total_of(candidates, row));
  const double most = std::log(static_cast<double>(candidates.size()));
  const double share =
      std::pow(std::clamp(entropy / most, 0.0, 1.0), static_cast<double>(params.dynatemp_exponent));
  return static_cast<float>(lowest + (highest - lowest) * share);
}

void reheat(std::span<const Candidate> candidates, std::span<float> row, float temperature) {
  if (candidates.empty()) return;
  const Candidate* best = &candidates.front();
  for (const Candidate& c : candidates)
    if (weight_of(c, row) > weight_of(*best, row) ||
        (weight_of(c, row) == weight_of(*best, row) && c.token < best->token))
      best = &c;
  const double most = weight_of(*best, row);
  const bool greedy = temperature < kTemperatureMin;
  for (const Candidate& c : candidates) {
    float& weight = row[static_cast<size_t>(c.token)];
    if (greedy)
      weight = &c == best ? 1 : 0;
    else
      weight = static_cast<float>(std::pow(double{weight} / most, 1 / double{temperature}));
  }
}

}  // namespace weir::sample
