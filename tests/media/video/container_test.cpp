// What files of videos begin as, and that none of them passes as whole once its end is cut off.
#include "media/video/container.h"

#include <gtest/gtest.h>

#include "media/video/video_samples.h"

namespace weir::media {
namespace {

TEST(Container, FilesAreWhatTheyBeginAs) {
  EXPECT_EQ(container_of(video_sample("h264.mp4")), Container::kMp4);
  EXPECT_EQ(container_of(video_sample("vp8.webm")), Container::kWebm);
  EXPECT_EQ(container_of(video_sample("pattern.gif")), Container::kGif);
  EXPECT_EQ(container_of("#EXTM3U\nfile:///etc/passwd\n"), std::nullopt);
  EXPECT_EQ(container_of(std::string_view("\0\0\0\x18"
                                          "ftypavif\0\0\0\0",
                                          16)),
            std::nullopt);
  EXPECT_EQ(container_of(""), std::nullopt);
}

TEST(Container, WhatEndsEarlyIsNotWhole) {
  for (const char* name : {"pattern.mp4", "fragments.mp4", "pattern.webm", "pattern.gif"}) {
    const std::string bytes = video_sample(name);
    const Container container = *container_of(bytes);
    EXPECT_TRUE(check_whole(container, bytes)) << name;
    // A cut between two boxes of a fragmented file leaves a shorter whole one.
    size_t whole = 0;
    for (size_t size = 16; size < bytes.size(); ++size) {
      const Result<void> cut = check_whole(container, std::string_view(bytes).substr(0, size));
      if (cut)
        ++whole;
      else
        EXPECT_NE(cut.error().message.find("ends early"), std::string::npos) << cut.error().message;
    }
    // Up to seven bytes after the last box are too few to be another.
    EXPECT_LE(whole, container == Container::kMp4 ? 80u : 0u) << name;
  }
}

TEST(Container, DamageOfTheFrameIsSaid) {
  std::string box = video_sample("pattern.mp4").substr(0, 8);
  box[3] = 7;
  EXPECT_EQ(check_whole(Container::kMp4, box).error().message,
            "the MP4 is damaged: a box says that it has 7 bytes, fewer than its own head");
  EXPECT_EQ(check_whole(Container::kWebm, "\x1a\x45\xdf\xa3\x80"
                                          "abcdefgh")
                .error()
                .message,
            "the WebM is damaged: no segment follows its head");
  std::string gif = video_sample("pattern.gif").substr(0, 14);
  gif[10] = 0;
  gif[13] = 'x';
  EXPECT_NE(check_whole(Container::kGif, gif).error().message.find("found a block of kind 120"),
            std::string::npos);
  // Recorded live: how long it is stands nowhere.
  EXPECT_TRUE(check_whole(Container::kWebm, "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff"));
}

TEST(Container, TablesAreCountedBeforeTheyAreRead) {
  constexpr int64_t kMost = 216'000;
  const std::string good = video_sample("pattern.mp4");
  const auto with = [&](std::string_view letters, size_t at, uint32_t value) {
    std::string bytes = good;
    for (size_t i = 0; i < 4; ++i)
      bytes[bytes.find(letters) + 4 + at + i] = static_cast<char>(value >> (8 * (3 - i)));
    return table_bytes(Container::kMp4, bytes, kMost);
  };
  const auto error = [&](std::string_view letters, size_t at, uint32_t value) {
    const auto bytes = with(letters, at, value);
    return bytes ? std::string() : bytes.error().message;
  };
  const auto taken = table_bytes(Container::kMp4, good, kMost);
  ASSERT_TRUE(taken);
  EXPECT_GE(*taken, 8u * 48);
  EXPECT_LE(*taken, 20u * 48);
  EXPECT_EQ(error("stts", 4, kMost + 1),
            "the MP4 has 216001 entries in a table 'stts'; at most 216000 are read");
  EXPECT_EQ(error("stsz", 8, kMost + 1),
            "the MP4 has 216001 entries in a table 'stsz'; at most 216000 are read");
  EXPECT_EQ(error("elst", 4, 65), "the MP4 has 65 edits of a stream ('elst'); at most 64 are read");
  EXPECT_EQ(*with("stts", 4, kMost) - *taken, (kMost - 1u) * 48);
  // Where all are of one size there is no table, but frames all the same.
  EXPECT_EQ(*taken - *with("stsz", 4, 1), 8u * (48 - 24));
  std::string many;
  for (int i = 0; i < 9; ++i) {
    many += std::string("\0\0\0\x18moof\0\0\0\x10trun\0\0\0\0", 20);
    many += std::string("\0\3\0\0", 4);
  }
  EXPECT_EQ(table_bytes(Container::kMp4, many, kMost).error().message,
            "the MP4 has 1769472 entries in its tables; at most 1728000 are read");
  EXPECT_EQ(table_bytes(Container::kMp4, std::string("\0\0\0\x10moov\0\0\0\x08" "cmov", 16), kMost)
                .error()
                .message,
            "the MP4 has a compressed head ('cmov'); plain ones are read");
  // Deeper than libavformat reads, and cut off: nothing, and no end of it.
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += std::string("\0\0\0\0trak", 8);
  EXPECT_EQ(table_bytes(Container::kMp4, deep, kMost).value(), 0u);
  EXPECT_EQ(table_bytes(Container::kWebm, good, kMost).value(), 0u);
}

}  // namespace
}  // namespace weir::media
