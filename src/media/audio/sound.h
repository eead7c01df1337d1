// Sound: one channel of samples at one rate, as float32. What decoders give and front ends take.
//
// Threads: a value.
#pragma once

#include <vector>

namespace weir::media {

struct Sound {
  int rate = 16000;              // Samples a second.
  std::vector<float> samples{};  // Full scale is from -1 to 1; files may go beyond it.

  double seconds() const { return static_cast<double>(samples.size()) / rate; }
};

}  // namespace weir::media
