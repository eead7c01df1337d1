#include "base/base64.h"

#include <gtest/gtest.h>

#include <random>

namespace weir {
namespace {

std::string encoded(std::string_view bytes) {
  std::string text;
  append_base64(text, std::as_bytes(std::span(bytes)));
  return text;
}

TEST(Base64, EncodesTheExamplesOfItsStandard) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xfb\xff\xbf"), "+/+/");
}

TEST(Base64, DecodesWhatItEncodesWithAndWithoutPadding) {
  std::mt19937 random(3);
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes(size, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::string text = encoded(bytes);
    EXPECT_EQ(decode_base64(text), bytes);
    while (text.ends_with('=')) text.pop_back();
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, RefusesCharactersThatAreNoDigits) {
  for (const char* text : {"Zm9v\n", "Zm-v", "Zm_v", "Z g=", "Zg==Zg==", "\xc3\xa4"})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace weir
