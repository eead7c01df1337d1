// WAV, without a library: chunks, then plain numbers.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/concat.h"
#include "media/audio/decoders.h"

namespace weir::media {
namespace {

constexpr const char* kEncodings =
    "integers of 8, 16, 24 or 32 bits, floats of 32 or 64, A-law and mu-law are read";

uint64_t little_endian(const char* bytes, size_t count) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) number |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return number;
}

uint32_t little_endian(std::string_view bytes, size_t at, size_t count) {
  return static_cast<uint32_t>(little_endian(bytes.data() + at, count));
}

enum class Encoding : uint8_t { kInteger, kFloat, kALaw, kMuLaw };

struct Format {
  Encoding encoding = Encoding::kInteger;
  size_t sample_bytes = 0;
  int64_t channels = 0;
  int64_t rate = 0;
};

// The formats' numbers, as in Microsoft's mmreg.h, and the bits of a sample that each comes with.
struct Known {
  uint32_t tag = 0;
  Encoding encoding{};
  std::array<uint32_t, 4> bits{};
};
constexpr std::array kKnown = {
    Known{1, Encoding::kInteger, {8, 16, 24, 32}},
    Known{3, Encoding::kFloat, {32, 64}},
    Known{6, Encoding::kALaw, {8}},
    Known{7, Encoding::kMuLaw, {8}},
};
constexpr uint32_t kExtensible = 0xfffe;
// What stands after the number of a format in the identifier of WAVE_FORMAT_EXTENSIBLE.
constexpr std::string_view kIdentifierEnd("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
constexpr size_t kFormatBytes = 16, kExtensibleBytes = 40;

std::string other_encoding(uint32_t tag, uint32_t bits) {
  const char* name = tag == 2 || tag == 0x11 ? " (ADPCM)"
                     : tag == 0x31           ? " (GSM)"
                     : tag == 0x55           ? " (MP3)"
                                             : "";
  return concat({"the WAV holds format ", std::to_string(tag), name, " of ", std::to_string(bits),
                 " bits; ", kEncodings});
}

Result<Format> read_format(std::string_view chunk) {
  if (chunk.size() < kFormatBytes)
    return damaged(SoundFormat::kWav, concat({"its format takes ", std::to_string(chunk.size()),
                                              " bytes, less than 16"}));
  uint32_t tag = little_endian(chunk, 0, 2);
  if (tag == kExtensible && chunk.size() >= kExtensibleBytes &&
      chunk.substr(26, kIdentifierEnd.size()) == kIdentifierEnd)
    tag = little_endian(chunk, 24, 2);
  const uint32_t channels = little_endian(chunk, 2, 2), rate = little_endian(chunk, 4, 4);
  const uint32_t frame = little_endian(chunk, 12, 2), bits = little_endian(chunk, 14, 2);
  const auto known = std::ranges::find(kKnown, tag, &Known::tag);
  if (known == kKnown.end() || bits == 0 || !std::ranges::count(known->bits, bits))
    return fail(ErrorCode::kMediaType, other_encoding(tag, bits));
  if (frame != channels * bits / 8)
    return damaged(SoundFormat::kWav,
                   concat({"it says that ", std::to_string(channels), " samples of ",
                           std::to_string(bits), " bits take ", std::to_string(frame), " bytes"}));
  return Format{known->encoding, bits / 8, channels, rate};
}

// What stands for a length that was not known: no file within the limits is so long. ffmpeg writes
// 0xffffffff, sox 0x7fff0000 and a little more.
constexpr uint32_t kUnknownFrom = 0x7fff0000;

// G.711's bytes: a sign, three bits of exponent, four of mantissa, some of them inverted.
float a_law(uint8_t byte) {
  const int bits = byte ^ 0x55;
  const int exponent = bits >> 4 & 7, mantissa = bits & 15;
  const int size = exponent == 0 ? 16 * mantissa + 8 : (16 * mantissa + 264) << (exponent - 1);
  return static_cast<float>((bits & 0x80) != 0 ? size : -size) / 32768;
}

float mu_law(uint8_t byte) {
  const int bits = byte ^ 0xff;
  const int exponent = bits >> 4 & 7, mantissa = bits & 15;
  const int size = ((8 * mantissa + 132) << exponent) - 132;
  return static_cast<float>((bits & 0x80) != 0 ? -size : size) / 32768;
}

float sample_of(Format format, const char* bytes) {
  const uint64_t bits = little_endian(bytes, format.sample_bytes);
  const auto byte = static_cast<uint8_t>(bits);
  switch (format.encoding) {
    case Encoding::kALaw:
      return a_law(byte);
    case Encoding::kMuLaw:
      return mu_law(byte);
    case Encoding::kFloat:
      return format.sample_bytes == 4 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                      : static_cast<float>(std::bit_cast<double>(bits));
    case Encoding::kInteger:
      break;
  }
  if (format.sample_bytes == 1) return static_cast<float>(byte - 128) / 128;  // Without a sign.
  // The sample's highest bit is moved to the highest of 32.
  const auto high = static_cast<uint32_t>(bits << (8 * (4 - format.sample_bytes)));
  return static_cast<float>(static_cast<int32_t>(high)) / 2147483648.0f;
}

Result<void> read_samples(Format format, std::string_view data, SoundBuilder& out) {
  const size_t frame = format.sample_bytes * static_cast<size_t>(format.channels);
  const size_t frames = frame == 0 ? 0 : data.size() / frame;
  WEIR_TRY(out.begin(format.channels, format.rate, static_cast<int64_t>(frames)));
  std::vector<float> samples;
  for (size_t at = 0; at < frames; at += kBlockFrames) {
    samples.resize(std::min(kBlockFrames, frames - at) * out.channels());
    const char* from = data.data() + at * frame;
    for (float& sample : samples) {
      sample = sample_of(format, from);
      from += format.sample_bytes;
    }
    WEIR_TRY(out.add(samples));
  }
  return {};
}

// `there` is what follows the header of the samples' chunk.
Result<std::string_view> data_of(uint32_t stated, std::string_view there) {
  if (stated >= kUnknownFrom) return there;
  if (stated <= there.size()) return there.substr(0, stated);
  return fail(ErrorCode::kInvalid,
              concat({"the WAV ends early: it says that its samples take ", std::to_string(stated),
                      " bytes, and ", std::to_string(there.size()), " are there"}));
}

}  // namespace

Result<void> decode_wav(std::string_view bytes, SoundBuilder& out) {
  constexpr size_t kRiffBytes = 12, kHeadBytes = 8;
  std::optional<Format> format;
  for (size_t at = kRiffBytes; at <= bytes.size() && bytes.size() - at >= kHeadBytes;) {
    const std::string_view name = bytes.substr(at, 4);
    const uint32_t length = little_endian(bytes, at + 4, 4);
    const std::string_view rest = bytes.substr(at + kHeadBytes);
    if (name == "data") {
      if (!format) return damaged(SoundFormat::kWav, "its samples come before their format");
      WEIR_ASSIGN(const std::string_view data, data_of(length, rest));
      return read_samples(*format, data, out);
    }
    if (rest.size() < length) break;
    if (name == "fmt ") {
      WEIR_ASSIGN(format, read_format(rest.substr(0, length)));
    }
    at += kHeadBytes + length + length % 2;  // Chunks begin at even places.
  }
  return damaged(SoundFormat::kWav, format ? "it ends before its samples"
                                           : "it ends before the format of its samples");
}

}  // namespace weir::media
