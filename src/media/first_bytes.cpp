#include "media/first_bytes.h"

#include <array>
#include <string>

#include "base/concat.h"
#include "media/audio/ogg_pages.h"

namespace weir::media {
namespace {

struct Format {
  const char* name;
  FileKind kind;
};

struct Beginning {
  std::string_view bytes;
  Format format;
};

constexpr Beginning kBeginnings[] = {
    {"\x89PNG", {"PNG", FileKind::kImage}},
    {"\xff\xd8\xff", {"JPEG", FileKind::kImage}},
    {"GIF8", {"GIF", FileKind::kImage}},
    {std::string_view("II*\0", 4), {"TIFF", FileKind::kImage}},
    {std::string_view("MM\0*", 4), {"TIFF", FileKind::kImage}},
    {std::string_view("\0\0\1\0", 4), {"ICO", FileKind::kImage}},
    {"8BPS", {"Photoshop", FileKind::kImage}},
    {"<svg", {"SVG", FileKind::kImage}},
    {"\xff\x0a", {"JPEG XL", FileKind::kImage}},
    {"fLaC", {"FLAC", FileKind::kSound}},
    {"ID3", {"MP3", FileKind::kSound}},
    {"FORM", {"AIFF", FileKind::kSound}},
    {"caff", {"CAF", FileKind::kSound}},
    {".snd", {"AU", FileKind::kSound}},
    {"#!AMR", {"AMR", FileKind::kSound}},
    {"\x30\x26\xb2\x75", {"WMA", FileKind::kSound}},
    {"RF64", {"RF64, a WAV of more than 4 GB", FileKind::kSound}},
    {"RIFX", {"RIFX, a WAV of big-endian numbers", FileKind::kSound}},
    {"wvpk", {"WavPack", FileKind::kSound}},
    {"MAC ", {"Monkey's Audio", FileKind::kSound}},
    {"MThd", {"MIDI", FileKind::kSound}},
    {"\x1a\x45\xdf\xa3", {"WebM or Matroska", FileKind::kVideo}},
    {"%PDF-", {"PDF", FileKind::kOther}},
    {"<?xml", {"XML, perhaps SVG", FileKind::kOther}},
};

// Files of boxes name a brand first; any other is MP4's.
Format format_of_boxes(std::string_view bytes) {
  if (is_boxes(bytes, "avif")) return {"AVIF", FileKind::kImage};
  for (const char* brand : {"heic", "heix", "mif1", "heim", "hevc"})
    if (is_boxes(bytes, brand)) return {"HEIC", FileKind::kImage};
  if (is_boxes(bytes, "M4A ")) return {"MP4 (M4A)", FileKind::kSound};
  return {"MP4", FileKind::kVideo};
}

Format format_of_ogg(std::string_view bytes) {
  const std::string_view packet = first_ogg_packet(bytes);
  if (packet.starts_with("\x7f"
                         "FLAC"))
    return {"Ogg with FLAC", FileKind::kSound};
  if (packet.starts_with("Speex")) return {"Ogg with Speex", FileKind::kSound};
  if (packet.starts_with("\x80theora")) return {"Ogg with a film", FileKind::kVideo};
  if (packet.starts_with("\x01vorbis")) return {"Ogg Vorbis", FileKind::kSound};
  if (packet.starts_with("OpusHead")) return {"Ogg Opus", FileKind::kSound};
  return {"Ogg with something else", FileKind::kOther};
}

// AAC's head of a frame: 12 ones, a version, a layer of 0.
bool is_aac(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\xff' && (static_cast<uint8_t>(bytes[1]) & 0xf6) == 0xf0;
}

// No name: unknown.
Format format_of_file(std::string_view bytes) {
  for (const auto& [begin, format] : kBeginnings)
    if (bytes.starts_with(begin)) return format;
  if (is_riff(bytes, "AVI ")) return {"AVI", FileKind::kVideo};
  if (is_riff(bytes, "WEBP")) return {"WebP", FileKind::kImage};
  if (is_riff(bytes, "WAVE")) return {"WAV", FileKind::kSound};
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") return format_of_boxes(bytes);
  if (bytes.starts_with("OggS")) return format_of_ogg(bytes);
  if (is_aac(bytes)) return {"AAC", FileKind::kSound};
  return {nullptr, FileKind::kOther};
}

std::string hexadecimal(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += out.empty() ? "" : " ";
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

const char* the(FileKind kind) {
  constexpr std::array kNames = {"the image", "the sound", "the video", "the file"};
  return kNames[static_cast<size_t>(kind)];
}

// Of a file that is of another kind than the expected one.
const char* which_is(FileKind kind) {
  constexpr std::array kNames = {", a picture", ", a sound", ", a video", ""};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

bool is_riff(std::string_view bytes, std::string_view kind) {
  return bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == kind;
}

bool is_boxes(std::string_view bytes, std::string_view brand) {
  return bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp" && bytes.substr(8, 4) == brand;
}

FileKind file_kind(std::string_view bytes) { return format_of_file(bytes).kind; }

Result<void> check_file_size(FileKind expected, size_t bytes, size_t most) {
  if (bytes <= most) return {};
  return fail(ErrorCode::kTooLarge,
              concat({the(expected), "'s file has ", std::to_string(bytes), " bytes; at most ",
                      std::to_string(most), " are read"}));
}

tl::unexpected<Error> refuse_format(FileKind expected, std::string_view bytes,
                                    std::string_view read) {
  if (bytes.empty()) return fail(ErrorCode::kInvalid, concat({the(expected), " is empty; ", read}));
  const Format format = format_of_file(bytes);
  if (format.name == nullptr)
    return fail(ErrorCode::kMediaType,
                concat({the(expected), " is of no known format, it begins with ",
                        hexadecimal(bytes.substr(0, 8)), "; ", read}));
  return fail(ErrorCode::kMediaType,
              concat({the(expected), " is ", format.name,
                      format.kind == expected ? "" : which_is(format.kind), "; ", read}));
}

}  // namespace weir::media
