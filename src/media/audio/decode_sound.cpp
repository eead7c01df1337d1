#include "media/audio/decode_sound.h"

#include <array>

#include "base/check.h"
#include "base/concat.h"
#include "media/audio/decoders.h"
#include "media/audio/ogg_pages.h"
#include "media/audio/sound_builder.h"
#include "media/first_bytes.h"

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

Result<void> decode(SoundFormat format, std::string_view bytes, SoundBuilder& out) {
  switch (format) {
    case SoundFormat::kWav:
      return decode_wav(bytes, out);
    case SoundFormat::kFlac:
      return decode_flac(bytes, out);
    case SoundFormat::kMp3:
      return decode_mp3(bytes, out);
    case SoundFormat::kVorbis:
      return decode_vorbis(bytes, out);
    case SoundFormat::kOpus:
      break;
  }
  return decode_opus(bytes, out);
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
  WEIR_TRY(check_file_size(FileKind::kSound, bytes.size(), limits.file_bytes_max));
  const std::optional<SoundFormat> format = sound_format_of(bytes);
  if (!format) return refuse_format(FileKind::kSound, bytes, kRead);
  SoundBuilder builder(*format, rate, limits);
  WEIR_TRY(decode(*format, bytes, builder));
  return builder.finish();
}

}  // namespace weir::media
