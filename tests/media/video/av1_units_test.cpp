// Units of AV1's packets, and what the head of a sequence says of its frames.
#include "media/video/av1_units.h"

#include <gtest/gtest.h>

#include "media/video/video_samples.h"

namespace weir::media {
namespace {

using std::string_view_literals::operator""sv;

TEST(Av1Units, EachHasItsBytes) {
  // A delimiter, a unit of two bytes with an extended head, and one that goes on to the end.
  const std::string_view packet = "\x12\0\x36\x08\x02""ab\x30""cde"sv;
  const auto first = first_av1_unit(packet);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, 2u);
  EXPECT_FALSE(first->begins_sequence);
  const auto second = first_av1_unit(packet.substr(2));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->payload, "ab");
  const auto third = first_av1_unit(packet.substr(2 + second->bytes));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->payload, "cde");
  EXPECT_EQ(third->bytes, 4u);
}

TEST(Av1Units, WhatGoesBeyondThePacketIsNone) {
  for (const std::string_view packet :
       {""sv, "\x36"sv, "\x32"sv, "\x32\x80"sv, "\x32\x03""ab"sv,
        "\x32\x80\x80\x80\x80\x80\x80\x80\x80\0"sv})
    EXPECT_FALSE(first_av1_unit(packet)) << packet.size();
}

TEST(Av1Units, ASequenceSaysHowLargeItsFramesMayBe) {
  const std::string bytes = video_sample("av1.webm");
  const auto unit = first_av1_unit(std::string_view(bytes).substr(bytes.find("\x0a\x0a"sv)));
  ASSERT_TRUE(unit && unit->begins_sequence);
  const auto sequence = read_av1_sequence(unit->payload);
  ASSERT_TRUE(sequence);
  EXPECT_EQ(sequence->profile, 0);
  EXPECT_EQ(sequence->width_max, kSide);
  EXPECT_EQ(sequence->height_max, kSide);
  EXPECT_FALSE(read_av1_sequence(unit->payload.substr(0, 3)));
  EXPECT_EQ(read_av1_sequence("\x20\0\0\0\0\0\0\0\0\0"sv)->profile, 1);
  // Of one picture: its profile, two flags, a level, and 16 bits for each side.
  const auto still = read_av1_sequence("\x18\x3f\xc0\0\0\0\0"sv);
  ASSERT_TRUE(still);
  EXPECT_EQ(still->width_max, 1 << 16);
  EXPECT_EQ(still->height_max, 1 << 16);
  // With time and a model of the decoder: 32 + 32 bits, 00, then 1 and 5 + 32 + 10 bits.
  EXPECT_FALSE(read_av1_sequence("\x04\0\0\0\0\0\0\0\0\0\0"sv));
}

}  // namespace
}  // namespace weir::media
