#include "media/processor/sizes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/concat.h"

namespace weir::media {
namespace {

double real(int64_t number) { return static_cast<double>(number); }
int64_t whole(double number) { return static_cast<int64_t>(number); }

// Python's round(): halves to even, the default of nearbyint().
int64_t round_to(double number, int unit) { return whole(std::nearbyint(number / unit)) * unit; }
int64_t floor_to(double number, int unit) { return whole(std::floor(number / unit)) * unit; }
int64_t ceil_to(double number, int unit) { return whole(std::ceil(number / unit)) * unit; }

// Of so many frames of this size; `counted`: how many they count as once they are rounded.
Size fit(Size image, Size rounded, int64_t frames, int64_t counted, int unit, int64_t pixels_min,
         int64_t pixels_max) {
  const double pixels = real(image.pixels()) * real(frames);
  if (rounded.pixels() * counted > pixels_max) {
    const double shrink = std::sqrt(pixels / real(pixels_max));
    return {std::max<int64_t>(unit, floor_to(real(image.width) / shrink, unit)),
            std::max<int64_t>(unit, floor_to(real(image.height) / shrink, unit))};
  }
  if (rounded.pixels() * counted < pixels_min) {
    const double grow = std::sqrt(real(pixels_min) / pixels);
    return {ceil_to(real(image.width) * grow, unit), ceil_to(real(image.height) * grow, unit)};
  }
  return rounded;
}

Result<void> check_shape(Size image) {
  constexpr int64_t kRatioMax = 200;
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  if (longer <= kRatioMax * shorter) return {};
  return fail(ErrorCode::kInvalid,
              concat({"the image has ", std::to_string(image.width), " x ",
                      std::to_string(image.height),
                      " pixels; this model takes images one side of which is at most 200 times "
                      "the other"}));
}

}  // namespace

Size with_shortest_edge(Size image, int edge) {
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  const int64_t other = whole(real(edge * longer) / real(shorter));
  return image.width <= image.height ? Size{edge, other} : Size{other, edge};
}

Size within_edge(Size image, int edge, int unit) {
  const double ratio = std::max(real(image.height) / edge, real(image.width) / edge);
  const auto side = [&](int64_t pixels) {
    const int64_t length = ratio > 1 ? whole(std::floor(real(pixels) / ratio)) : pixels;
    return (std::max<int64_t>(length, 1) - 1) / unit * unit + unit;
  };
  return {side(image.width), side(image.height)};
}

Result<Size> within_pixels(Size image, int unit, int64_t pixels_min, int64_t pixels_max) {
  WEIR_TRY(check_shape(image));
  return fit(image, rounded_to(image, unit, 0), 1, 1, unit, pixels_min, pixels_max);
}

Result<Size> within_frame_pixels(Size image, int64_t frames, int group, int unit,
                                 int64_t pixels_min, int64_t pixels_max) {
  if (image.width < unit || image.height < unit) {
    const double grow = std::max(unit / real(image.height), unit / real(image.width));
    image = {whole(real(image.width) * grow), whole(real(image.height) * grow)};
  }
  WEIR_TRY(check_shape(image));
  return fit(image, rounded_to(image, unit, 0), frames, round_to(real(frames), group), unit,
             pixels_min, pixels_max);
}

Size rounded_to(Size image, int unit, int least) {
  return {std::max<int64_t>(least, round_to(real(image.width), unit)),
          std::max<int64_t>(least, round_to(real(image.height), unit))};
}

Size within_tokens(Size image, int unit, int64_t pixels_min, int64_t pixels_max) {
  return fit(image, rounded_to(image, unit, unit), 1, 1, unit, pixels_min, pixels_max);
}

Size filling_pixels(Size image, int unit, int64_t pixels_max) {
  const double grow = std::sqrt(real(pixels_max) / real(image.pixels()));
  Size size = {floor_to(grow * real(image.width), unit), floor_to(grow * real(image.height), unit)};
  const int64_t longest = std::max<int64_t>(1, pixels_max / unit / unit) * unit;
  // A side that would vanish is one unit, and the other at most all units in a row.
  if (size.height == 0) {
    size = {std::clamp<int64_t>(image.width / image.height * unit, unit, longest), unit};
  } else if (size.width == 0) {
    size = {unit, std::clamp<int64_t>(image.height / image.width * unit, unit, longest)};
  }
  return size;
}

Size with_longest_edge(Size image, int edge) {
  const auto scaled = [](Size from, int64_t longest) {
    const double aspect = real(from.width) / real(from.height);
    return from.width >= from.height ? Size{longest, whole(real(longest) / aspect)}
                                     : Size{whole(real(longest) * aspect), longest};
  };
  Size size = scaled(image, edge);
  int64_t& shorter = image.width >= image.height ? size.height : size.width;
  shorter = std::max<int64_t>(1, shorter + shorter % 2);
  constexpr int64_t kLongest = 4096;
  if (std::max(size.width, size.height) > kLongest) size = scaled(size, kLongest);
  return {std::max<int64_t>(1, size.width), std::max<int64_t>(1, size.height)};
}

Size whole_tiles(Size image, int tile) {
  const double aspect = real(image.width) / real(image.height);
  if (image.width >= image.height) {
    const int64_t width = ceil_to(real(image.width), tile);
    return {width, std::max<int64_t>(tile, ceil_to(real(whole(real(width) / aspect)), tile))};
  }
  const int64_t height = ceil_to(real(image.height), tile);
  return {std::max<int64_t>(tile, ceil_to(real(whole(real(height) * aspect)), tile)), height};
}

Size without_distortion(Size image, Size box) {
  const double across = real(box.width) / real(image.width);
  const double down = real(box.height) / real(image.height);
  const auto part = [](int64_t side, double scale, int64_t most) {
    return std::clamp<int64_t>(whole(std::floor(real(side) * scale)), 1, most);
  };
  if (across < down) return {box.width, part(image.height, across, box.height)};
  return {part(image.width, down, box.width), box.height};
}

}  // namespace weir::media
