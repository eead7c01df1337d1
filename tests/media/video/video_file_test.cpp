// Files of videos as pictures: the frames that were put in, in any encoding, chosen in any way; and
// a sentence for each file that is refused.
#include "media/video/video_file.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "media/image/exif.h"
#include "media/video/video_samples.h"

namespace weir::media {
namespace {

class VideoFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!check_reads_videos()) GTEST_SKIP() << "built without libavformat (WEIR_VIDEO)";
  }
};

std::vector<int64_t> all_frames() {
  std::vector<int64_t> frames(kFrames);
  std::iota(frames.begin(), frames.end(), 0);
  return frames;
}

std::vector<Image> frames_of(std::string_view bytes, const std::vector<int64_t>& chosen) {
  Result<VideoFile> file = VideoFile::open(bytes, {});
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  file->choose(chosen);
  std::vector<Image> frames;
  for (size_t i = 0; i < chosen.size(); ++i) {
    Result<Image> frame = file->next();
    if (!frame) {
      ADD_FAILURE() << frame.error().message;
      return {};
    }
    frames.push_back(*std::move(frame));
  }
  return frames;
}

// Of opening a file and of decoding all of it.
std::string error_of(std::string_view bytes, const VideoLimits& limits = {}) {
  Result<VideoFile> file = VideoFile::open(bytes, limits);
  if (!file) return file.error().message;
  std::vector<int64_t> chosen(static_cast<size_t>(file->frames()));
  std::iota(chosen.begin(), chosen.end(), 0);
  file->choose(chosen);
  for (size_t i = 0; i < chosen.size(); ++i)
    if (const Result<Image> frame = file->next(); !frame) return frame.error().message;
  return "";
}

TEST_F(VideoFiles, FramesAreThoseThatWerePutIn) {
  for (const char* name : {"pattern.mp4", "pattern.webm", "pattern.gif"}) {
    const std::string bytes = video_sample(name);
    const Result<VideoFile> file = VideoFile::open(bytes, {});
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    EXPECT_EQ(file->frames(), kFrames) << name;
    EXPECT_NEAR(file->rate(), 4, 0.02) << name;
    const std::vector<Image> frames = frames_of(bytes, all_frames());
    ASSERT_EQ(frames.size(), static_cast<size_t>(kFrames)) << name;
    for (int i = 0; i < kFrames; ++i)
      EXPECT_EQ(frames[static_cast<size_t>(i)], pattern(i)) << name << ", frame " << i;
  }
}

TEST_F(VideoFiles, EveryEncodingIsDecodedWithinItsError) {
  for (const char* name : {"fragments.mp4", "h264.mp4", "hevc.mp4", "mpeg4.mp4", "vp8.webm",
                           "vp9.webm", "av1.webm", "refresh.mp4"}) {
    const std::vector<Image> frames = frames_of(video_sample(name), all_frames());
    ASSERT_EQ(frames.size(), static_cast<size_t>(kFrames)) << name;
    for (int i = 0; i < kFrames; ++i) {
      const Image& frame = frames[static_cast<size_t>(i)];
      EXPECT_LT(distance(frame, pattern(i)), 24) << name << ", frame " << i;
      EXPECT_GT(distance(frame, pattern((i + 1) % kFrames)), 40) << name << ", frame " << i;
    }
  }
}

// What is passed over changes nothing of what is decoded.
TEST_F(VideoFiles, AnyChoiceGivesTheSameFrames) {
  for (const char* name : {"pattern.mp4", "pattern.webm", "pattern.gif", "fragments.mp4",
                           "h264.mp4", "hevc.mp4", "mpeg4.mp4", "vp8.webm", "vp9.webm",
                           "av1.webm", "refresh.mp4"}) {
    const std::string bytes = video_sample(name);
    const std::vector<Image> all = frames_of(bytes, all_frames());
    ASSERT_EQ(all.size(), static_cast<size_t>(kFrames)) << name;
    for (int choice = 1; choice < 1 << kFrames; choice += 7) {
      std::vector<int64_t> chosen;
      for (int i = 0; i < kFrames; ++i)
        if ((choice >> i & 1) != 0) chosen.push_back(i);
      const std::vector<Image> some = frames_of(bytes, chosen);
      ASSERT_EQ(some.size(), chosen.size()) << name;
      for (size_t i = 0; i < chosen.size(); ++i)
        ASSERT_EQ(some[i], all[static_cast<size_t>(chosen[i])]) << name << ", frame " << chosen[i];
    }
  }
}

TEST_F(VideoFiles, FramesAreTurnedUprightAsTheFileSays) {
  std::string bytes = video_sample("pattern.mp4");
  // Of the box: its letters, flags, 20 bytes of times and a number, 8 of nothing, 8 of layers.
  const size_t matrix = bytes.find("tkhd") + 4 + 4 + 20 + 8 + 8;
  const auto put = [&](size_t place, int value) {
    for (size_t i = 0; i < 4; ++i)
      bytes[matrix + 4 * place + i] =
          static_cast<char>(static_cast<uint32_t>(value * 65536) >> (8 * (3 - i)));
  };
  struct Case {
    int a, b, c, d, orientation;
  };
  for (const Case& turn : {Case{1, 0, 0, 1, 1}, Case{-1, 0, 0, 1, 2}, Case{-1, 0, 0, -1, 3},
                           Case{1, 0, 0, -1, 4}, Case{0, 1, 1, 0, 5}, Case{0, 1, -1, 0, 6},
                           Case{0, -1, -1, 0, 7}, Case{0, -1, 1, 0, 8}}) {
    put(0, turn.a);
    put(1, turn.b);
    put(3, turn.c);
    put(4, turn.d);
    const std::vector<Image> frames = frames_of(bytes, {3});
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0], upright(pattern(3), turn.orientation)) << turn.orientation;
  }
}

TEST_F(VideoFiles, WhatIsNoVideoIsRefusedWithASentence) {
  EXPECT_EQ(error_of(""), "the video is empty; MP4, WebM and GIF are read");
  EXPECT_EQ(error_of("\x89PNG\r\n\x1a\n0000"),
            "the video is PNG, a picture; MP4, WebM and GIF are read");
  EXPECT_EQ(error_of("#EXTM3U\nfile:///etc/passwd\n"),
            "the video is of no known format, it begins with 23 45 58 54 4d 33 55 0a; MP4, WebM and "
            "GIF are read");
  EXPECT_EQ(error_of(video_sample("sound.mp4")),
            "expected pictures in the MP4, found none, only sound or text");
  EXPECT_EQ(error_of(video_sample("prores.mov")),
            "the MP4 has pictures in prores; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and GIF are decoded");
  // The head of a fragmented file, without its fragments.
  std::string bytes = video_sample("fragments.mp4");
  bytes.resize(bytes.find("moof") - 4);
  EXPECT_EQ(error_of(bytes), "the MP4 has no frame; at least one was expected");
}

TEST_F(VideoFiles, WhatEndsEarlyIsRefused) {
  for (const char* name : {"pattern.mp4", "pattern.webm", "pattern.gif", "av1.webm", "vp8.webm"}) {
    const std::string bytes = video_sample(name);
    for (const size_t part : {1, 5, 9})
      EXPECT_NE(error_of(bytes.substr(0, bytes.size() * part / 10)).find("ends early"),
                std::string::npos)
          << name;
  }
}

// Whatever is wrong within: an error of one line, or frames.
TEST_F(VideoFiles, DamageIsRefusedOrPasses) {
  for (const char* name : {"pattern.mp4", "h264.mp4", "hevc.mp4", "pattern.webm", "vp8.webm",
                           "av1.webm", "mpeg4.mp4", "pattern.gif"}) {
    const std::string bytes = video_sample(name);
    int refused = 0;
    for (size_t at = 40; at < bytes.size(); at += bytes.size() / 60) {
      std::string hurt = bytes;
      for (size_t i = at; i < std::min(at + 8, hurt.size()); ++i) hurt[i] = static_cast<char>(~hurt[i]);
      const std::string error = error_of(hurt);
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
      refused += error.empty() ? 0 : 1;
    }
    EXPECT_GE(refused, 3) << name;
  }
}

TEST_F(VideoFiles, LimitsAreHeldAgainstWhatTheHeaderSays) {
  std::string bytes = video_sample("pattern.mp4");
  const size_t size = bytes.find("avc1", bytes.find("stsd")) + 4 + 24;
  for (const size_t at : {size, size + 2}) {
    bytes[at] = static_cast<char>(30'000 >> 8);
    bytes[at + 1] = static_cast<char>(30'000 & 255);
  }
  EXPECT_EQ(error_of(bytes),
            "the MP4 says that its frames have 30000 x 30000 pixels; at most 9437184, and 8192 a side, are "
            "decoded");
  const std::string good = video_sample("pattern.mp4");
  EXPECT_EQ(error_of(good, {.file_bytes_max = 100}),
            "the video's file has " + std::to_string(good.size()) + " bytes; at most 100 are read");
  EXPECT_EQ(error_of(good, {.frames_max = 7}),
            "the MP4 has 8 entries in a table 'stsz'; at most 7 are read");
  EXPECT_EQ(error_of(video_sample("pattern.webm"), {.frames_max = 7}),
            "the WebM has more than 7 frames, which is the most");
  EXPECT_EQ(error_of(good, {.seconds_max = 1}),
            "the MP4 lasts 2 s; at most 1 s are read");
  EXPECT_EQ(error_of(good, {.decode_seconds_max = 0}),
            "decoding the MP4 takes more than the 0 s of processor time that a video gets: send a "
            "shorter or a smaller one");
  EXPECT_EQ(error_of(good, {.stopped = [] { return true; }}), "The client has left.");
}

// How often it is asked whether to go on until all is decoded.
int asked_of(std::string_view bytes, const std::vector<int64_t>& chosen) {
  int asked = 0;
  VideoLimits limits;
  limits.stopped = [&] { return ++asked, false; };
  Result<VideoFile> file = VideoFile::open(bytes, limits);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return 0;
  }
  EXPECT_GT(asked, 0) << "it is asked while the head is read";
  asked = 0;
  file->choose(chosen);
  for (size_t i = 0; i < chosen.size(); ++i)
    if (const Result<Image> frame = file->next(); !frame) ADD_FAILURE() << frame.error().message;
  return asked;
}

// Before each packet, and before each picture that a packet has.
TEST_F(VideoFiles, EachPictureIsAskedFor) {
  for (const char* name : {"h264.mp4", "hevc.mp4", "mpeg4.mp4", "vp8.webm", "vp9.webm", "av1.webm"})
    EXPECT_GE(asked_of(video_sample(name), all_frames()), 2 * kFrames) << name;
}

TEST_F(VideoFiles, WhereverItIsStoppedItSaysSo) {
  for (const char* name : {"h264.mp4", "hevc.mp4", "vp9.webm", "av1.webm"}) {
    const std::string bytes = video_sample(name);
    const int asked = asked_of(bytes, all_frames());
    for (int at = 1; at <= asked; ++at) {
      int count = 0;
      VideoLimits limits;
      limits.stopped = [&] { return ++count >= at; };
      ASSERT_EQ(error_of(bytes, limits), "The client has left.") << name << ", asked " << at;
    }
  }
}

TEST_F(VideoFiles, Av1OfFullColoursIsRefused) {
  std::string bytes = video_sample("av1.webm");
  // The heads of its sequence, of ten bytes: in the container's head and in the first packet.
  const std::string head = "\x0a\x0a";
  for (size_t at = bytes.find(head); at != std::string::npos; at = bytes.find(head, at + 2))
    if (bytes[at + 2] == 0) bytes[at + 2] = 1 << 5;
  EXPECT_EQ(error_of(bytes), "the WebM has AV1 of profile 1; profile 0 (4:2:0) is decoded");
}

TEST_F(VideoFiles, MemoryIsAskedForBeforeItIsTaken) {
  for (const char* name : {"h264.mp4", "av1.webm", "vp8.webm"}) {
    size_t asked = 0;
    VideoLimits limits;
    limits.admit = [&](size_t bytes) -> Result<void> {
      asked += bytes;
      return {};
    };
    EXPECT_EQ(error_of(video_sample(name), limits), "");
    // At least the picture in the making, and the one handed out.
    EXPECT_GE(asked, 2u * kSide * kSide * 3 / 2) << name;
    limits.admit = [](size_t) -> Result<void> { return fail(ErrorCode::kTooLarge, "no room"); };
    EXPECT_EQ(error_of(video_sample(name), limits), "no room") << name;
  }
}

}  // namespace
}  // namespace weir::media
