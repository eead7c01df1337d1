// Filter: by how much each pixel of a picture counts for one of another size. The numbers are
// Pillow's, as processors' files have them (`resample`).
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::media {

enum class Filter : uint8_t { kNearest = 0, kLanczos = 1, kBilinear = 2, kBicubic = 3, kBox = 4 };

std::optional<Filter> filter_of(int resample);

// How far a filter reaches to either side, in pixels of the smaller of the two pictures, and how
// much counts what is `distance` away. REQUIRES: not kNearest, which takes one pixel.
double filter_reach(Filter filter);
double filter_weight(Filter filter, double distance);

}  // namespace weir::media
