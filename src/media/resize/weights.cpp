#include "media/resize/weights.h"

#include <algorithm>

namespace weir::media {
namespace {

// Bytes times weights of 22 bits stay within 32 bits, also where negative weights let others exceed 1.
constexpr int kBitsMax = 32 - 8 - 2;

// As many as the largest weight leaves of 15 bits and a sign.
int bits_for(double largest) {
  int bits = 0;
  while (bits < kBitsMax && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < 1 << 15) ++bits;
  return bits;
}

}  // namespace

AxisWeights::AxisWeights(int from, int to, Filter filter, Arithmetic arithmetic) {
  const double scale = static_cast<double>(from) / to;
  const double widening = std::max(scale, 1.0);  // The filter covers what becomes one pixel.
  const double reach = filter_reach(filter) * widening;
  std::vector<double> exact;
  begins_.push_back(0);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - reach + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + reach + 0.5), from);
    const size_t begin = exact.size();
    double sum = 0;
    for (int k = first; k < end; ++k) {
      exact.push_back(filter_weight(filter, (k - centre + 0.5) * (1 / widening)));
      sum += exact.back();
    }
    if (sum != 0)
      for (size_t k = begin; k < exact.size(); ++k) exact[k] /= sum;
    first_.push_back(first);
    begins_.push_back(exact.size());
  }
  bits_ = arithmetic == Arithmetic::kPillow ? kBitsMax : bits_for(std::ranges::max(exact));
  weights_.reserve(exact.size());
  for (const double weight : exact)
    weights_.push_back(static_cast<int32_t>(weight * (1 << bits_) + (weight < 0 ? -0.5 : 0.5)));
}

}  // namespace weir::media
