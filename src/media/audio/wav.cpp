// WAV: RIFF chunks are walked; the samples are libsndfile's.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/concat.h"
#include "media/audio/containers.h"

namespace weir::media {
namespace {

constexpr const char* kEncodings =
    "integers of 8, 16, 24 or 32 bits, floats of 32 or 64, A-law and mu-law are read";

uint32_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i)
    number |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return number;
}

// A format's number with the sizes of sample that it comes in; numbers as in Microsoft's mmreg.h.
struct Encoding {
  uint32_t tag = 0;
  std::array<uint32_t, 4> bits{};
};
constexpr std::array kRead = {
    Encoding{1, {8, 16, 24, 32}},  // Integers.
    Encoding{3, {32, 64}},         // Floats.
    Encoding{6, {8}},              // A-law.
    Encoding{7, {8}},              // mu-law.
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

Result<void> check_format(std::string_view chunk) {
  if (chunk.size() < kFormatBytes)
    return damaged(SoundFormat::kWav, concat({"its format takes ", std::to_string(chunk.size()),
                                              " bytes, less than 16"}));
  uint32_t tag = little_endian(chunk, 0, 2);
  if (tag == kExtensible && chunk.size() >= kExtensibleBytes &&
      chunk.substr(26, kIdentifierEnd.size()) == kIdentifierEnd)
    tag = little_endian(chunk, 24, 2);
  const uint32_t channels = little_endian(chunk, 2, 2), rate = little_endian(chunk, 4, 4);
  const uint32_t frame = little_endian(chunk, 12, 2), bits = little_endian(chunk, 14, 2);
  const auto encoding = std::ranges::find(kRead, tag, &Encoding::tag);
  if (encoding == kRead.end() || bits == 0 || !std::ranges::count(encoding->bits, bits))
    return fail(ErrorCode::kMediaType, other_encoding(tag, bits));
  if (channels == 0 || rate == 0)
    return damaged(SoundFormat::kWav, concat({"it says that it has ", std::to_string(channels),
                                              " channels at ", std::to_string(rate), " Hz"}));
  if (frame != channels * bits / 8)
    return damaged(SoundFormat::kWav,
                   concat({"it says that ", std::to_string(channels), " samples of ",
                           std::to_string(bits), " bits take ", std::to_string(frame), " bytes"}));
  return {};
}

// What stands for a length that was not known: no file within the limits is so long. ffmpeg writes
// 0xffffffff, sox 0x7fff0000 and a little more.
constexpr uint32_t kUnknownFrom = 0x7fff0000;

Result<void> check_data(uint32_t stated, size_t there) {
  if (stated >= kUnknownFrom || stated <= there) return {};
  return fail(ErrorCode::kInvalid,
              concat({"the WAV ends early: it says that its samples take ", std::to_string(stated),
                      " bytes, and ", std::to_string(there), " are there"}));
}

}  // namespace

Result<void> check_wav(std::string_view bytes) {
  constexpr size_t kRiffBytes = 12, kHeadBytes = 8;
  bool format = false;
  for (size_t at = kRiffBytes; at <= bytes.size() && bytes.size() - at >= kHeadBytes;) {
    const std::string_view name = bytes.substr(at, 4);
    const uint32_t length = little_endian(bytes, at + 4, 4);
    const std::string_view chunk = bytes.substr(at + kHeadBytes, length);
    if (name == "data") {
      if (!format) return damaged(SoundFormat::kWav, "its samples come before their format");
      if (length == 0) return fail(ErrorCode::kInvalid, "the WAV says that it has no samples");
      return check_data(length, chunk.size());
    }
    if (chunk.size() < length) break;
    if (name == "fmt ") {
      WEIR_TRY(check_format(chunk));
      format = true;
    }
    at += kHeadBytes + length + length % 2;  // Chunks begin at even places.
  }
  return damaged(SoundFormat::kWav, format ? "it ends before its samples"
                                           : "it ends before the format of its samples");
}

}  // namespace weir::media
