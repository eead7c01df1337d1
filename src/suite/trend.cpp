#include "suite/trend.h"

namespace weir::suite {

double slope(std::span<const Sample> samples, double from) {
  double count = 0, at = 0, value = 0;
  for (const Sample& sample : samples) {
    if (sample.at < from) continue;
    ++count;
    at += sample.at;
    value += sample.value;
  }
  if (count == 0) return 0;
  at /= count;
  value /= count;
  double together = 0, alone = 0;
  for (const Sample& sample : samples) {
    if (sample.at < from) continue;
    together += (sample.at - at) * (sample.value - value);
    alone += (sample.at - at) * (sample.at - at);
  }
  return alone > 0 ? together / alone : 0;
}

}  // namespace weir::suite
