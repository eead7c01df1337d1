// The sizes that processors give pictures: the rules of the families, one a function, to the integer.
// Where the references divide, these divide in double precision too, and round as Python does.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace weir::media {

struct Size {
  int64_t width = 0;
  int64_t height = 0;

  int64_t pixels() const { return width * height; }
  bool operator==(const Size&) const = default;
};

// All take a picture of at least 1 x 1 pixels and a unit of at least 1.

// The shorter side becomes `edge`.
Size with_shortest_edge(Size image, int edge);

// No side longer than `edge`, each rounded up to whole units.
Size within_edge(Size image, int edge, int unit);

// Sides of whole units whose product lies between the bounds, nearly of the picture's shape.
// kInvalid where one side is more than 200 times the other.
Result<Size> within_pixels(Size image, int unit, int64_t pixels_min, int64_t pixels_max);

// The same for `frames` pictures, whose pixels the bounds count together: as many whole groups of
// frames as they are nearest to, and at least one. REQUIRES: frames >= group.
Result<Size> within_frame_pixels(Size image, int64_t frames, int group, int unit,
                                 int64_t pixels_min, int64_t pixels_max);

// Each side rounded to units, at least `least`.
Size rounded_to(Size image, int unit, int least);

// As within_pixels(), without a limit to the shape, and at least a unit a side.
Size within_tokens(Size image, int unit, int64_t pixels_min, int64_t pixels_max);

// Sides of whole units, as large as the bound allows.
Size filling_pixels(Size image, int unit, int64_t pixels_max);

// The longer side becomes `edge`, the shorter one even; then both at most 4,096.
Size with_longest_edge(Size image, int edge);

// The longer side rounded up to whole tiles, the shorter one after it likewise.
Size whole_tiles(Size image, int tile);

// The largest size of the picture's shape within `box`.
Size without_distortion(Size image, Size box);

}  // namespace weir::media
