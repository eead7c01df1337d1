#include "media/resize/filter.h"

#include <cmath>
#include <numbers>

namespace weir::media {
namespace {

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// Keys' cubic with a = -1/2.
double bicubic(double x) {
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

}  // namespace

std::optional<Filter> filter_of(int resample) {
  if (resample < 0 || resample > static_cast<int>(Filter::kBox)) return std::nullopt;
  return static_cast<Filter>(resample);
}

double filter_reach(Filter filter) {
  switch (filter) {
    case Filter::kLanczos:
      return 3;
    case Filter::kBicubic:
      return 2;
    case Filter::kBilinear:
      return 1;
    case Filter::kBox:
    case Filter::kNearest:
      break;
  }
  return 0.5;
}

double filter_weight(Filter filter, double distance) {
  const double x = std::abs(distance);
  switch (filter) {
    case Filter::kLanczos:  // Not on the right edge, as in Pillow.
      return distance >= -3 && distance < 3 ? sinc(distance) * sinc(distance / 3) : 0;
    case Filter::kBicubic:
      return bicubic(x);
    case Filter::kBilinear:
      return x < 1 ? 1 - x : 0;
    case Filter::kBox:
    case Filter::kNearest:
      break;
  }
  return distance > -0.5 && distance <= 0.5 ? 1 : 0;
}

}  // namespace weir::media
