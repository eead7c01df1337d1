// How a quantity that is looked at now and then grows.
//
// Threads: pure functions.
#pragma once

#include <span>

namespace weir::suite {

struct Sample {
  double at = 0;  // In the unit of time of the slope.
  double value = 0;
};

// By how much it grows in a unit of time: the line of least squares through the samples from `from`
// on. 0 with fewer than two moments.
double slope(std::span<const Sample> samples, double from);

}  // namespace weir::suite
