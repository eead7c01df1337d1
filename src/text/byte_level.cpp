#include "text/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace weir::text {

namespace {

// The alphabet's last character is U+0143.
constexpr size_t kCharacterEnd = 0x144;

struct Tables {
  std::array<uint16_t, 256> character{};      // By byte.
  std::array<int16_t, kCharacterEnd> byte{};  // By character; -1: not in the alphabet.
};

// Printable Latin-1 stands for itself; the other bytes, in order, are U+0100 and following.
constexpr Tables kTables = [] {
  Tables tables;
  tables.byte.fill(-1);
  uint16_t next = 0x100;
  for (uint16_t b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    tables.character[b] = printable ? b : next++;
    tables.byte[tables.character[b]] = static_cast<int16_t>(b);
  }
  return tables;
}();

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  const size_t begin = out.size();
  out.resize(begin + bytes.size() * 2);
  char* to = out.data() + begin;
  for (const char b : bytes) {
    const uint16_t c = kTables.character[static_cast<uint8_t>(b)];
    if (c < 0x80) {
      *to++ = static_cast<char>(c);
    } else {
      *to++ = static_cast<char>(0xc0 | c >> 6);
      *to++ = static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  out.resize(static_cast<size_t>(to - out.data()));
}

bool append_from_byte_level(std::string& out, std::string_view characters) {
  const size_t begin = out.size();
  for (size_t i = 0; i < characters.size();) {
    const char32_t c = decode_utf8(characters, i);
    if (c >= kCharacterEnd || kTables.byte[c] < 0) {
      out.resize(begin);
      return false;
    }
    out += static_cast<char>(kTables.byte[c]);
  }
  return true;
}

}  // namespace weir::text
