#include "base/utf8.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

namespace weir {
namespace {

bool is_scalar(uint32_t c) { return c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff); }

// Table 3-6 of the standard, and nothing else: the length by the lead byte's bits, then the value,
// which must not have had a shorter form. Nothing if there is no whole character in front.
std::optional<size_t> length_by_value(std::string_view text) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(text[i])}; };
  const uint32_t lead = byte(0);
  const size_t length = lead < 0x80           ? 1
                        : (lead >> 5) == 0x6  ? 2
                        : (lead >> 4) == 0xe  ? 3
                        : (lead >> 3) == 0x1e ? 4
                                              : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  uint32_t value = length == 1 ? lead : lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || !is_scalar(value)) return std::nullopt;
  return length;
}

// Whether some bytes could be added that make it a character; `added` at most.
bool can_be_completed(const std::string& text, int added) {
  if (const auto length = length_by_value(text)) return *length == text.size();
  if (added == 0) return false;
  for (const int byte : {0x80, 0x90, 0x9f, 0xa0, 0x8f, 0xbf})
    if (can_be_completed(text + static_cast<char>(byte), added - 1)) return true;
  return false;
}

// The longest front that could still become a character, at least one byte: what one U+FFFD is for.
size_t ill_formed_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && can_be_completed(std::string(text.substr(0, bytes + 1)), 3))
    ++bytes;
  return bytes;
}

void expect_front_as_by_value(std::string_view text) {
  const Utf8Front front = utf8_front(text);
  const auto length = length_by_value(text);
  ASSERT_EQ(front.kind == Utf8Front::Kind::kValid, length.has_value())
      << testing::PrintToString(text);
  if (length) {
    ASSERT_EQ(front.bytes, *length) << testing::PrintToString(text);
    return;
  }
  const bool incomplete = can_be_completed(std::string(text), 3);
  ASSERT_EQ(front.kind == Utf8Front::Kind::kIncomplete, incomplete) << testing::PrintToString(text);
  ASSERT_EQ(front.bytes, ill_formed_bytes(text)) << testing::PrintToString(text);
}

TEST(Utf8, EveryCharacterIsReadAsItWasWritten) {
  std::string all;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (!is_scalar(c)) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(text.size(), c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u);
    const Utf8Front front = utf8_front(text);
    ASSERT_EQ(front.kind, Utf8Front::Kind::kValid);
    ASSERT_EQ(front.bytes, text.size());
    size_t index = 0;
    ASSERT_EQ(decode_utf8(text, index), c);
    ASSERT_EQ(index, text.size());
    ASSERT_EQ(decode_utf8_before(text, index), c);
    ASSERT_EQ(index, 0u);
    if (c % 97 == 0) all += text;
  }
  EXPECT_TRUE(valid_utf8(all));
  size_t end = all.size();
  for (size_t index = all.size(), next = 0; index > 0;) {
    const char32_t before = decode_utf8_before(all, index);
    next = index;
    ASSERT_EQ(decode_utf8(all, next), before);
    ASSERT_EQ(next, end);  // One character ends where the next begins.
    end = index;
  }
}

TEST(Utf8, EveryPairOfBytesIsJudgedByItsValue) {
  for (int first = 0; first < 256; ++first) {
    expect_front_as_by_value(std::string(1, static_cast<char>(first)));
    for (int second = 0; second < 256; ++second)
      expect_front_as_by_value(std::string{static_cast<char>(first), static_cast<char>(second)});
  }
}

TEST(Utf8, LongerSequencesAreJudgedByTheirValueAtAllBorders) {
  constexpr int kLeads[] = {0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                            0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
  constexpr int kRest[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xf4};
  for (const int a : kLeads)
    for (const int b : kRest)
      for (const int c : kRest) {
        std::string text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
        expect_front_as_by_value(text);
        for (const int d : kRest) expect_front_as_by_value(text + static_cast<char>(d));
      }
}

// The examples of the Unicode standard, tables 3-8 to 3-11.
TEST(Utf8, IllFormedPartsAreReplacedAsTheStandardShows) {
  const auto made_valid = [](std::string_view bytes) {
    std::string out;
    append_valid_utf8(out, bytes);
    return out;
  };
  const auto replaced = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += kReplacementCharacter;
    return out;
  };
  EXPECT_EQ(made_valid("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), replaced(8) + "A");
  EXPECT_EQ(made_valid("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), replaced(8) + "A");
  EXPECT_EQ(made_valid("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            replaced(5) + "A" + replaced(2) + "B");
  EXPECT_EQ(made_valid("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), replaced(4) + "A");
  EXPECT_EQ(made_valid("\xe2\x82"), replaced(1)) << "the end comes within a character";
  EXPECT_EQ(made_valid("d\xc3\xa9j\xc3\xa0"), "d\xc3\xa9j\xc3\xa0");
  EXPECT_EQ(made_valid(""), "");
}

TEST(Utf8, WhatWasMadeValidIsValidAndWhatWasValidStays) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (size_t i = random() % 12; i > 0; --i) {
      if (random() % 2 == 0) {
        bytes += static_cast<char>(random() % 256);
        continue;
      }
      uint32_t c = 0;
      do c = static_cast<uint32_t>(random() % 0x110000) >> random() % 16;
      while (!is_scalar(c));
      append_utf8(bytes, c);
    }
    bool valid = true;
    for (size_t i = 0; i < bytes.size() && valid;) {
      const auto length = length_by_value(std::string_view(bytes).substr(i));
      valid = length.has_value();
      i += length.value_or(1);
    }
    ASSERT_EQ(valid_utf8(bytes), valid) << testing::PrintToString(bytes);
    std::string made = "kept";
    append_valid_utf8(made, bytes);
    ASSERT_TRUE(valid_utf8(made)) << testing::PrintToString(bytes);
    ASSERT_EQ(made == "kept" + bytes, valid) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace weir
