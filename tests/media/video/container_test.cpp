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

}  // namespace
}  // namespace weir::media
