#include "media/audio/decode_sound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "media/audio/containers.h"
#include "media/audio/mp3_file.h"
#include "media/audio/resampler.h"
#include "media/audio/sound_file.h"

namespace weir::media {
namespace {

constexpr const char* kRead = "WAV, FLAC, MP3, Ogg Vorbis and Ogg Opus are read";

uint8_t byte_at(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// The head of a frame of MPEG's layer 3: 11 ones, a version, the layer, a bit rate, a rate.
bool is_mp3_frame(std::string_view bytes) {
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0xff || (byte_at(bytes, 1) & 0xe0) != 0xe0)
    return false;
  const int version = byte_at(bytes, 1) >> 3 & 3, layer = byte_at(bytes, 1) >> 1 & 3;
  const int bit_rate = byte_at(bytes, 2) >> 4, rate = byte_at(bytes, 2) >> 2 & 3;
  return version != 1 && layer == 1 && bit_rate != 15 && rate != 3;
}

bool is_riff(std::string_view bytes, std::string_view kind) {
  return bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == kind;
}

// What a file of another format is called, as far as its first bytes tell.
std::string other_format(std::string_view bytes) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 15> kBegins = {{
      {"\x1a\x45\xdf\xa3", "WebM or Matroska"},
      {"FORM", "AIFF"},
      {"caff", "CAF"},
      {".snd", "AU"},
      {"#!AMR", "AMR"},
      {"\x30\x26\xb2\x75", "WMA"},
      {"RF64", "RF64, a WAV of more than 4 GB"},
      {"RIFX", "RIFX, a WAV of big-endian numbers"},
      {"wvpk", "WavPack"},
      {"MAC ", "Monkey's Audio"},
      {"MThd", "MIDI"},
      {"\x89PNG", "PNG, a picture"},
      {"\xff\xd8\xff", "JPEG, a picture"},
      {"%PDF-", "PDF"},
      {"<?xml", "XML"},
  }};
  for (const auto& [begin, name] : kBegins)
    if (bytes.starts_with(begin)) return name;
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") return "MP4 (M4A)";
  if (is_riff(bytes, "AVI ")) return "AVI";
  if (is_riff(bytes, "WEBP")) return "WebP, a picture";
  if (bytes.size() >= 2 && byte_at(bytes, 0) == 0xff && (byte_at(bytes, 1) & 0xf6) == 0xf0)
    return "AAC";
  if (!bytes.starts_with("OggS")) return "";
  const std::string_view packet = first_ogg_packet(bytes);
  if (packet.starts_with("\x7f"
                         "FLAC"))
    return "Ogg with FLAC";
  if (packet.starts_with("Speex")) return "Ogg with Speex";
  if (packet.starts_with("\x80theora")) return "Ogg with a film";
  return "Ogg with something else";
}

tl::unexpected<Error> refuse_format(std::string_view bytes) {
  if (bytes.empty()) return fail(ErrorCode::kInvalid, concat({"the sound is empty; ", kRead}));
  const std::string name = other_format(bytes);
  if (!name.empty())
    return fail(ErrorCode::kMediaType, concat({"the sound is ", name, "; ", kRead}));
  constexpr const char* kHex = "0123456789abcdef";
  std::string begin;
  for (const char c : bytes.substr(0, 8)) {
    begin += begin.empty() ? "" : " ";
    begin += kHex[static_cast<uint8_t>(c) >> 4];
    begin += kHex[static_cast<uint8_t>(c) & 15];
  }
  return fail(ErrorCode::kMediaType,
              concat({"the sound is of no known format, it begins with ", begin, "; ", kRead}));
}

Result<void> check_container(SoundFormat format, std::string_view bytes) {
  if (format == SoundFormat::kWav) return check_wav(bytes);
  if (format == SoundFormat::kVorbis || format == SoundFormat::kOpus)
    return check_ogg(format, bytes);
  return {};
}

tl::unexpected<Error> too_long(SoundFormat format, std::string_view seconds,
                               const SoundLimits& limits) {
  return fail(ErrorCode::kTooLarge,
              concat({"the ", format_name(format), " lasts ", seconds, " s; at most ",
                      std::to_string(limits.seconds_max), " s are decoded"}));
}

template <class File>
Result<void> check_header(SoundFormat format, const File& file, const SoundLimits& limits) {
  const int channels = file.channels(), rate = file.rate();
  if (channels > limits.channels_max)
    return fail(
        ErrorCode::kTooLarge,
        concat({"the ", format_name(format), " has ", std::to_string(channels),
                " channels; at most ", std::to_string(limits.channels_max), " are decoded"}));
  if (rate < kFileRateMin || rate > kFileRateMax)
    return fail(ErrorCode::kMediaType,
                concat({"the ", format_name(format), " has ", std::to_string(rate),
                        " samples a second; from ", std::to_string(kFileRateMin), " to ",
                        std::to_string(kFileRateMax), " are decoded"}));
  if (file.frames() && *file.frames() > limits.seconds_max * rate)
    return too_long(format, std::to_string((*file.frames() - 1) / rate + 1), limits);
  return {};
}

// Numbers beyond this are no sound: it is the most that an integer of 32 bits written as a float
// can be. The sums of squares that front ends make of such stay far below float32's largest.
constexpr float kSampleMax = 2147483648.0f;

// The mean of each frame's channels, in float32 and in their order, as NumPy's mean has it. The
// first frame that has a sample of no use, or `count`.
size_t mix(std::span<const float> samples, int channels, size_t count, float* out) {
  const auto width = static_cast<size_t>(channels);
  for (size_t frame = 0; frame < count; ++frame) {
    const float* from = samples.data() + frame * width;
    float sum = 0;
    for (size_t c = 0; c < width; ++c) {
      if (!(std::fabs(from[c]) <= kSampleMax)) return frame;
      sum += from[c];
    }
    out[frame] = sum / static_cast<float>(channels);
  }
  return count;
}

tl::unexpected<Error> no_number(SoundFormat format, int64_t frame, int rate) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f",
                static_cast<double>(frame) / static_cast<double>(rate));
  return damaged(format, concat({"after ", seconds,
                                 " s comes a sample that is not a number, or beyond 2^31"}));
}

// Frames that are decoded at once; with eight channels they take 128 KiB.
constexpr size_t kBlockFrames = 4096;

// `File` is a SoundFile or an Mp3File.
template <class File>
Result<Sound> decode(SoundFormat format, File file, int rate, const SoundLimits& limits) {
  WEIR_TRY(check_header(format, file, limits));
  WEIR_ASSIGN(Resampler resampler, Resampler::create(file.rate(), rate));
  Sound out;
  out.rate = rate;
  const std::optional<int64_t> stated = file.frames();
  if (stated) out.samples.reserve(static_cast<size_t>(resampled_count(*stated, file.rate(), rate)));
  std::vector<float> samples(kBlockFrames * static_cast<size_t>(file.channels()));
  std::vector<float> mixed(kBlockFrames);
  int64_t frames = 0;
  for (;;) {
    WEIR_ASSIGN(const size_t count, file.read(samples));
    if (count == 0) break;
    const size_t good = mix(samples, file.channels(), count, mixed.data());
    if (good < count) return no_number(format, frames + static_cast<int64_t>(good), file.rate());
    frames += static_cast<int64_t>(count);
    if (frames > limits.seconds_max * file.rate())
      return too_long(format, "more than that", limits);
    resampler.add({mixed.data(), count}, out.samples);
  }
  if (frames == 0)
    return fail(ErrorCode::kInvalid, concat({"the ", format_name(format), " has no samples"}));
  if (stated && frames < *stated)
    return fail(
        ErrorCode::kInvalid,
        concat({"the ", format_name(format), " ends early: it says that it has ",
                std::to_string(*stated), " samples, and ", std::to_string(frames), " are there"}));
  resampler.finish(out.samples);
  return out;
}

}  // namespace

const char* format_name(SoundFormat format) {
  constexpr std::array kNames = {"WAV", "FLAC", "MP3", "Ogg Vorbis", "Ogg Opus"};
  return kNames[static_cast<size_t>(format)];
}

std::optional<SoundFormat> sound_format_of(std::string_view bytes) {
  if (is_riff(bytes, "WAVE")) return SoundFormat::kWav;
  if (bytes.starts_with("fLaC")) return SoundFormat::kFlac;
  if (bytes.starts_with("ID3") || is_mp3_frame(bytes)) return SoundFormat::kMp3;
  if (!bytes.starts_with("OggS")) return std::nullopt;
  const std::string_view packet = first_ogg_packet(bytes);
  if (packet.starts_with("\x01vorbis")) return SoundFormat::kVorbis;
  if (packet.starts_with("OpusHead")) return SoundFormat::kOpus;
  return std::nullopt;
}

tl::unexpected<Error> damaged(SoundFormat format, std::string_view what) {
  return fail(ErrorCode::kInvalid, concat({"the ", format_name(format), " is damaged: ", what}));
}

Result<Sound> decode_sound(std::string_view bytes, int rate, const SoundLimits& limits) {
  CHECK(rate > 0);
  if (bytes.size() > limits.file_bytes_max)
    return fail(ErrorCode::kTooLarge,
                concat({"the sound's file has ", std::to_string(bytes.size()), " bytes; at most ",
                        std::to_string(limits.file_bytes_max), " are read"}));
  const std::optional<SoundFormat> format = sound_format_of(bytes);
  if (!format) return refuse_format(bytes);
  WEIR_TRY(check_container(*format, bytes));
  if (*format == SoundFormat::kMp3) {
    WEIR_ASSIGN(Mp3File file, Mp3File::open(bytes));
    return decode(*format, std::move(file), rate, limits);
  }
  WEIR_ASSIGN(SoundFile file, SoundFile::open(*format, bytes));
  return decode(*format, std::move(file), rate, limits);
}

}  // namespace weir::media
