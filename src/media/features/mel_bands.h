// MelBands: weights that sum up the frequencies of a frame into bands as wide as ears hear them.
//
// Threads: pure functions, and a value.
#pragma once

#include <cstddef>
#include <vector>

#include "media/features/front_end.h"

namespace weir::media {

// A triangle over frequencies first, first + 1, ...; none where it is narrower than what lies
// between two frequencies.
struct MelBand {
  size_t first = 0;
  std::vector<double> weights{};
};

// `front_end.mels` of them.
std::vector<MelBand> mel_bands(const FrontEnd& front_end);

}  // namespace weir::media
