#include "model/rope.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace weir::model {

namespace {

// Two floats for each rotated dimension and position: 8,192 x 128 is 4 MiB and 20 ms at load.
// Beyond it an angle costs about 2 us a token, small beside attention at that distance.
constexpr int32_t kTablePositions = 8192;
constexpr int kHalfMax = 512;  // check_spec: head_dim <= 1024.

// theta^(2i / dim), in float32 as the references hold it.
float inverse_frequency(double theta, int i, int dim) {
  const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
  return static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
}

float llama3_frequency(const Rope& r, float f) {
  const float wavelength = 2 * std::numbers::pi_v<float> / f;
  if (wavelength > r.original_context / r.low_freq_factor) return f / r.factor;
  if (wavelength < r.original_context / r.high_freq_factor) return f;
  const float s = (r.original_context / wavelength - r.low_freq_factor) /
                  (r.high_freq_factor - r.low_freq_factor);
  return (1 - s) * f / r.factor + s * f;
}

// The share of interpolation at pair i: 0 below the first pair that turns `beta_fast` times within
// the original context, 1 above the one that turns `beta_slow` times.
float yarn_ramp(const Rope& r, int i) {
  const double d = r.dim, theta = static_cast<double>(r.theta);
  const auto pair_of = [&](float turns) {
    return d *
           std::log(static_cast<double>(r.original_context) /
                    (static_cast<double>(turns) * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_of(r.beta_fast), high = pair_of(r.beta_slow);
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high) high += 0.001;  // The references' guard against a division by zero.
  return static_cast<float>(std::clamp((i - low) / (high - low), 0.0, 1.0));
}

}  // namespace

RopeTable::RopeTable(const Rope& rope, int32_t context_max) : rope_(rope) {
  assert(half() <= kHalfMax);
  const auto size = static_cast<size_t>(half());
  frequencies_.resize(size);
  for (int i = 0; i < half(); ++i) {
    const float slow = inverse_frequency(static_cast<double>(rope.theta), i, rope.dim);
    float& f = frequencies_[static_cast<size_t>(i)];
    f = i < half() - rope.still_pairs ? 1 / slow : 0;
    if (rope.scaling == Rope::kLinear) f /= rope.factor;
    if (rope.scaling == Rope::kLlama3) f = llama3_frequency(rope, f);
    if (rope.scaling == Rope::kYarn) {
      const float ramp = yarn_ramp(rope, i);
      f = 1 / (rope.factor * slow) * ramp + f * (1 - ramp);
    }
    if (rope.scaling == Rope::kLongRope) {
      f = 1 / (rope.short_factor[static_cast<size_t>(i)] * slow);
      long_frequencies_.push_back(1 / (rope.long_factor[static_cast<size_t>(i)] * slow));
    }
  }
  if (rope.length_dependent()) return;
  positions_ = std::min(context_max, kTablePositions);
  table_.resize(static_cast<size_t>(positions_) * 2 * size);
  for (int32_t p = 0; p < positions_; ++p)
    compute(p, frequencies_, rope_.attention_factor,
            table_.data() + static_cast<size_t>(p) * 2 * size);
}

bool RopeTable::beyond(int32_t length) const {
  return static_cast<float>(length) > rope_.original_context;
}

float RopeTable::factor_of(int32_t length) const {
  return rope_.long_attention_factor != 0 && beyond(length) ? rope_.long_attention_factor
                                                            : rope_.attention_factor;
}

void RopeTable::frequencies(int32_t length, std::span<float> out) const {
  if (!beyond(length) || !rope_.length_dependent()) {
    std::ranges::copy(frequencies_, out.begin());
  } else if (rope_.scaling == Rope::kLongRope) {
    std::ranges::copy(long_frequencies_, out.begin());
  } else {
    const double factor = static_cast<double>(rope_.factor), dim = rope_.dim;
    const double stretch =
        factor * length / static_cast<double>(rope_.original_context) - (factor - 1);
    const double theta = static_cast<double>(rope_.theta) * std::pow(stretch, dim / (dim - 2));
    for (int i = 0; i < half(); ++i)
      out[static_cast<size_t>(i)] = 1 / inverse_frequency(theta, i, rope_.dim);
  }
}

void RopeTable::compute(int32_t position, std::span<const float> frequencies, float factor,
                        float* out) const {
  const auto n = static_cast<size_t>(half());
  for (size_t i = 0; i < n; ++i) {
    const auto angle = static_cast<double>(static_cast<float>(position) * frequencies[i]);
    out[i] = static_cast<float>(std::cos(angle)) * factor;
    const auto sine = static_cast<float>(std::sin(angle)) * factor;
    out[n + i] = rope_.backward ? -sine : sine;
  }
}

Angles RopeTable::angles(int32_t position, int32_t length, std::span<float> own) const {
  const auto n = static_cast<size_t>(half());
  if (position < positions_) {
    const float* row = table_.data() + static_cast<size_t>(position) * 2 * n;
    return {row, row + n};
  }
  if (rope_.length_dependent()) {
    std::array<float, kHalfMax> f;
    frequencies(length, std::span(f.data(), n));
    compute(position, std::span<const float>(f.data(), n), factor_of(length), own.data());
  } else {
    compute(position, frequencies_, rope_.attention_factor, own.data());
  }
  return {own.data(), own.data() + n};
}

Angles RopeTable::angles(const RopePosition& position, int32_t length, std::span<float> own) const {
  const auto n = static_cast<size_t>(half());
  if (position[0] == position[1] && position[0] == position[2])
    return angles(position[0], length, own);
  CHECK(rope_.sections != decltype(rope_.sections){});  // Or three numbers would mean nothing.
  std::array<float, 2 * kHalfMax> one;
  for (size_t axis = 0; axis < position.size(); ++axis) {
    const Angles turned = angles(position[axis], length, std::span(one).first(2 * n));
    for (size_t pair = 0; pair < n; ++pair) {
      if (axis_of(rope_, static_cast<int>(pair)) != axis) continue;
      own[pair] = turned.cos[pair];
      own[n + pair] = turned.sin[pair];
    }
  }
  return {own.data(), own.data() + n};
}

}  // namespace weir::model
