#include "encoder/positions.h"

#include <algorithm>
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
