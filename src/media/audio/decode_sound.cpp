#include "media/audio/decode_sound.h"

#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "media/audio/decoders.h"
#include "media/audio/ogg_pages.h"
#include "media/audio/sound_builder.h"

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
  if (bytes.size() > limits.file_bytes_max)
    return fail(ErrorCode::kTooLarge,
                concat({"the sound's file has ", std::to_string(bytes.size()), " bytes; at most ",
                        std::to_string(limits.file_bytes_max), " are read"}));
  const std::optional<SoundFormat> format = sound_format_of(bytes);
  if (!format) return refuse_format(bytes);
  SoundBuilder builder(*format, rate, limits);
  WEIR_TRY(decode(*format, bytes, builder));
  return builder.finish();
}

}  // namespace weir::media
