#include "base/utf8.h"

namespace weir {

Utf8Front utf8_front(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Front::Kind::kValid, 1};
  // The second byte's range is what excludes overlong forms, surrogates and what is above U+10FFFF.
  uint8_t length = 0, low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return {Utf8Front::Kind::kInvalid, 1};
  }
  for (uint8_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {Utf8Front::Kind::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Front::Kind::kInvalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Front::Kind::kValid, length};
}

bool valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const Utf8Front front = utf8_front(text.substr(i));
    if (front.kind != Utf8Front::Kind::kValid) return false;
    i += front.bytes;
  }
  return true;
}

void append_utf8(std::string& out, char32_t character) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | character >> 6);
    put(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    put(0xe0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3f));
    put(0x80 | (character & 0x3f));
  } else {
    put(0xf0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3f));
    put(0x80 | (character >> 6 & 0x3f));
    put(0x80 | (character & 0x3f));
  }
}

void append_valid_utf8(std::string& out, std::string_view bytes) {
  size_t copied = 0;  // Everything before is in `out`.
  for (size_t i = 0; i < bytes.size();) {
    if (static_cast<uint8_t>(bytes[i]) < 0x80) {
      ++i;
      continue;
    }
    const Utf8Front front = utf8_front(bytes.substr(i));
    if (front.kind != Utf8Front::Kind::kValid) {
      out.append(bytes.substr(copied, i - copied)).append(kReplacementCharacter);
      copied = i + front.bytes;
    }
    i += front.bytes;
  }
  out.append(bytes.substr(copied));
}

}  // namespace weir
