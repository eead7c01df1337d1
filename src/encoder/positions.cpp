#include "encoder/positions.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::encoder {

int32_t bucket_of(int32_t i, int32_t count, int32_t side) {
  // torch.arange counts in double precision, from its start on, and rounds each number.
  const auto place = static_cast<float>(i * (1.0 / count));
  const double step = 1.0 / side;
  int32_t bucket = 0;
  while (bucket + 1 < side && static_cast<float>(step + bucket * step) <= place) ++bucket;
  return bucket;
}

Mixture antialiased(int32_t i, int32_t count, int32_t side) {
  const float scale = static_cast<float>(side) / static_cast<float>(count);
  const float support = std::max(scale, 1.0f), sharpness = 1 / support;
  const float centre = scale * (static_cast<float>(i) + 0.5f);
  const auto whole = [](float x) { return static_cast<int32_t>(x); };
  Mixture out{.first = std::max(whole(centre - support + 0.5f), 0)};
  const int32_t end = std::min(whole(centre + support + 0.5f), side);
  float sum = 0;
  for (int32_t j = out.first; j < end; ++j) {
    const float x = (static_cast<float>(j) - centre + 0.5f) * sharpness;
    out.weights.push_back(std::max(1 - std::fabs(x), 0.0f));
    sum += out.weights.back();
  }
  for (float& weight : out.weights) weight /= sum;
  return out;
}

Mixture corner_to_corner(int32_t i, int32_t count, int32_t side) {
  // As torch.linspace counts: from both ends to the middle.
  const auto last = static_cast<float>(side - 1);
  const float step = count > 1 ? last / static_cast<float>(count - 1) : 0;
  const float place = i < count / 2 || count == 1 ? step * static_cast<float>(i)
                                                  : last - step * static_cast<float>(count - 1 - i);
  const auto first = static_cast<int32_t>(place);
  const float beyond = place - static_cast<float>(first);
  Mixture out{.first = first, .weights = {1 - beyond}};
  if (first + 1 < side) out.weights.push_back(beyond);
  return out;
}

Mixture bicubic(int32_t i, int32_t count, int32_t side) {
  // From -1 to 1, as a grid of samples is given to torch, and back.
  const float along = (static_cast<float>(i) + 0.5f) / static_cast<float>(count) * 2 - 1;
  const float place = ((along + 1) * static_cast<float>(side) - 1) / 2;
  const float below = std::floor(place), t = place - below;
  constexpr float kA = -0.75f;  // Torch's.
  const auto near = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  const std::array<float, 4> weights = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  const auto entry = [&](int32_t tap) {
    return std::clamp(static_cast<int32_t>(below) - 1 + tap, 0, side - 1);
  };
  Mixture out{.first = entry(0)};
  out.weights.resize(static_cast<size_t>(entry(3) - out.first + 1));
  for (int32_t tap = 0; tap < 4; ++tap)
    out.weights[static_cast<size_t>(entry(tap) - out.first)] += weights[static_cast<size_t>(tap)];
  return out;
}

void turn(const Rope& rope, int32_t head_dim, View::Place place, float* out) {
  const int32_t pairs = head_dim / 2, half = pairs / 2;
  for (int32_t i = 0; i < pairs; ++i) {
    const bool second = i >= half;
    const int32_t at = second ? i - half : i;
    int32_t step = 4 * at;
    int32_t coordinate = second ? place.x : place.y;
    if (rope.kind == Rope::kInterleavedRates && second) step += 2;
    if (rope.kind == Rope::kNeighbours) coordinate = (second ? place.y : place.x) + 1;
    if (rope.kind == Rope::kHalves) coordinate = second ? place.y : place.x;
    const float rate =
        1 / std::pow(rope.theta, static_cast<float>(step) / static_cast<float>(head_dim));
    const float angle = static_cast<float>(coordinate) * rate;
    out[i] = std::cos(angle);
    out[pairs + i] = std::sin(angle);
  }
}

void stand_still(int32_t head_dim, float* out) {
  std::fill_n(out, head_dim / 2, 1.0f);
  std::fill_n(out + head_dim / 2, head_dim / 2, 0.0f);
}

}  // namespace weir::encoder
