// WAV files for tests, as bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::media {

inline void append_little_endian(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i));
}

struct WavHeader {
  int tag = 1;  // 1: integers, 3: floats, 6: A-law, 7: mu-law.
  int channels = 1;
  int rate = 16000;
  int bits = 16;
  bool extensible = false;
};

inline std::string wav_format(const WavHeader& header) {
  std::string out;
  append_little_endian(out, header.extensible ? 0xfffe : static_cast<uint64_t>(header.tag), 2);
  append_little_endian(out, static_cast<uint64_t>(header.channels), 2);
  append_little_endian(out, static_cast<uint64_t>(header.rate), 4);
  const auto frame = static_cast<uint64_t>(header.channels * header.bits / 8);
  append_little_endian(out, static_cast<uint64_t>(header.rate) * frame, 4);
  append_little_endian(out, frame, 2);
  append_little_endian(out, static_cast<uint64_t>(header.bits), 2);
  if (!header.extensible) return out;
  append_little_endian(out, 22, 2);  // Bytes that follow.
  append_little_endian(out, static_cast<uint64_t>(header.bits), 2);
  append_little_endian(out, 0, 4);  // Which loudspeakers.
  append_little_endian(out, static_cast<uint64_t>(header.tag), 2);
  return out + std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
}

inline std::string chunk(std::string_view name, std::string_view bytes) {
  std::string out(name);
  append_little_endian(out, bytes.size(), 4);
  out += bytes;
  if (bytes.size() % 2 != 0) out += '\0';
  return out;
}

inline std::string riff(std::string_view chunks) {
  std::string out = "RIFF";
  append_little_endian(out, chunks.size() + 4, 4);
  return out + "WAVE" + std::string(chunks);
}

inline std::string wav(const WavHeader& header, std::string_view data) {
  return riff(chunk("fmt ", wav_format(header)) + chunk("data", data));
}

// Of 16 bits.
inline std::string wav_of(const std::vector<int>& samples, int channels = 1, int rate = 16000) {
  std::string data;
  for (const int sample : samples) append_little_endian(data, static_cast<uint64_t>(sample), 2);
  return wav({.channels = channels, .rate = rate}, data);
}

inline std::string wav_of_floats(const std::vector<float>& samples, int channels = 1,
                                 int rate = 16000) {
  std::string data;
  for (const float sample : samples) append_little_endian(data, std::bit_cast<uint32_t>(sample), 4);
  return wav({.tag = 3, .channels = channels, .rate = rate, .bits = 32}, data);
}

}  // namespace weir::media
