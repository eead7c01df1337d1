// EXIF: how a camera was held when it took a picture. Nothing else of these data is read.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "media/image/image.h"

namespace weir::media {

// The orientation that EXIF data state (TIFF's tag 274 in the first directory), 1 where they state
// none that is valid. `tiff` begins with "II" or "MM"; a leading "Exif\0\0" is passed over.
//   1 upright · 2 mirrored · 3 turned by 180 degrees · 4 upside down, mirrored
//   5 mirrored, then turned left · 6 to be turned right · 7 mirrored, then turned right · 8 left
int exif_orientation(std::string_view tiff);

// The picture as it was seen.
Image upright(Image image, int orientation);

}  // namespace weir::media
