// What fuzz targets of sound formats have in common: any bytes that begin as the format give a
// sound within the limits, or an error of one line.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "media/audio/decode_sound.h"

namespace weir::media {

inline void check_sound(SoundFormat format, const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (sound_format_of(bytes) != format) return;
  constexpr int kRate = 16000;
  const SoundLimits limits = {.seconds_max = 4};  // Many short sounds find more than few long ones.
  const Result<Sound> sound = decode_sound(bytes, kRate, limits);
  if (!sound) {
    CHECK(!sound.error().message.empty());
    for (const char c : sound.error().message) CHECK(c != '\n' && c != '\0');
    return;
  }
  CHECK(sound->rate == kRate && !sound->samples.empty());
  CHECK(static_cast<int64_t>(sound->samples.size()) <= limits.seconds_max * kRate);
  for (const float sample : sound->samples) CHECK(std::isfinite(sample));
}

}  // namespace weir::media
