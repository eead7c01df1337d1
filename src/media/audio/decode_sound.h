// From the bytes of a sound's file to a Sound: WAV, FLAC, MP3, Ogg Vorbis and Ogg Opus.
//
// A file is what its first bytes say, whatever a name or a media type beside it claims. Channels
// become one by their mean, and the rate becomes the one that is asked for, while the file is
// decoded: memory grows with the seconds, not with the file's rate or channels.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "media/audio/sound.h"

namespace weir::media {

enum class SoundFormat : uint8_t { kWav, kFlac, kMp3, kVorbis, kOpus };

const char* format_name(SoundFormat format);

// Which of the formats above the bytes begin as.
std::optional<SoundFormat> sound_format_of(std::string_view bytes);

struct SoundLimits {
  // An hour as front ends hear it, in a WAV file (16 kHz, one channel, 16 bits: 115 MB), is within
  // both.
  size_t file_bytes_max = size_t{128} << 20;
  int64_t seconds_max = 3600;
  int channels_max = 8;  // 7.1, the most that recorders of films have.
  // Asked before memory is taken for samples, for so many bytes more: for all where the file says how
  // long it lasts, else a minute's at a time. Its error is decode_sound()'s. Empty: all is admitted.
  std::function<Result<void>(size_t bytes)> admit{};
};

// Of the file: from telephones to what studios record at most.
inline constexpr int kFileRateMin = 8000, kFileRateMax = 192'000;

// What decoding takes for each sample that it gives: the sample. Where the file does not say how long
// it lasts there is room for the longest one, of which no more is used than samples come.
inline constexpr int64_t kDecodeBytesPerSample = sizeof(float);

// Errors: kTooLarge beyond the limits; kMediaType for other formats, or other encodings of these;
// kInvalid for a damaged file, one that ends early, and one without a sample. Each is a sentence
// that says what was expected and what was found.
Result<Sound> decode_sound(std::string_view bytes, int rate, const SoundLimits& limits);

}  // namespace weir::media
