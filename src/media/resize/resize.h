// resize(): a picture in another size, to the integer as the libraries give it that the reference
// processors use.
//
// Both work in two passes, rows and columns, with weights of fixed point and bytes between the
// passes, and both widen their filters where the picture shrinks (antialiasing). They differ in the
// precision of the weights, and so by one or two levels of 255 in few pixels.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "media/image/image.h"
#include "media/resize/filter.h"

namespace weir::media {

enum class Arithmetic : uint8_t {
  kPillow,  // Weights of 22 bits after the point.
  kTorch,   // torchvision on bytes: weights of 16 bits, as many after the point as the largest allows.
};

// REQUIRES: an image that is not empty; width, height >= 1.
Image resize(const Image& image, int width, int height, Filter filter, Arithmetic arithmetic);

}  // namespace weir::media
