// VideoFile: a video's file as pictures: how many frames it has, when each is shown, and the frames
// that are chosen, decoded one after another. What libavformat reads of MP4, WebM and GIF; a program
// that is built without it (the build option WEIR_VIDEO) refuses all.
//
// A file is what its first bytes say, whatever a name or a media type beside it claims. Sound and
// further streams are passed over. Frames are turned upright as the file says; what is transparent
// keeps the colour below it. Nothing outside the bytes is ever opened, whatever they name.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "media/image/image.h"

namespace weir::media {

struct VideoLimits {
  // Two minutes of what telephones record by default (1080p, 60 MB a minute).
  size_t file_bytes_max = size_t{128} << 20;
  // Of a frame: 4,096 x 2,304, the largest that cameras call 4K.
  int64_t pixels_max = int64_t{4096} * 2304;
  int side_max = 8192;  // Of a frame: rows are padded, so that narrow ones take more than their pixels.
  int64_t seconds_max = 3600;
  // In the file: an hour of 60 a second.
  int64_t frames_max = 216'000;
  // Of processor time, for all that is decoded: two minutes of 1080p take about 20 on a core.
  double decode_seconds_max = 60;
  int frames_held = 1;  // How many decoded frames the caller has at a time.
  // Asked before memory is taken, for so much more; its error becomes the reader's. Empty: all is
  // admitted.
  std::function<Result<void>(size_t bytes)> admit{};
  // Asked whenever bytes of the file are read, and before each picture is decoded, as the time is; true
  // ends it with kCancelled. Empty: never.
  std::function<bool()> stopped{};
};

// One allocation by libav's own functions has at most kAllocationMax bytes: a table or a list of the
// file, a packet, a frame (4 bytes for each of 9.4 million pixels). AV1's decoder, a library of its own,
// is not bounded by that. A file has at most kStreamsMax streams.
inline constexpr size_t kAllocationMax = size_t{64} << 20;
inline constexpr int kStreamsMax = 8;
// What reading a file's head takes beside the tables of an MP4 (container.h): buffers, descriptions of
// streams, WebM's lists as cameras and browsers write them (an hour has 10,000 entries of 100 bytes).
inline constexpr size_t kDemuxerBytes = size_t{4} << 20;

// Whether files of videos are decoded by this program; if not, kUnsupported says what would.
Result<void> check_reads_videos();

class VideoFile {
 public:
  // Reads the file once through without decoding. `bytes` outlive it. Errors: kTooLarge beyond the
  // limits; kMediaType for other formats, or other encodings within these; kInvalid for a damaged
  // file, one that ends early, one without a picture; kUnsupported as check_reads_videos(). Each is
  // a sentence that says what was expected and what was found.
  static Result<VideoFile> open(std::string_view bytes, const VideoLimits& limits);

  VideoFile(VideoFile&&) noexcept;
  VideoFile& operator=(VideoFile&&) noexcept;
  ~VideoFile();

  // All frames of the file, at least one, and how many of them make a second on the average.
  int64_t frames() const;
  double rate() const;

  // Which frames next() gives, ascending, none twice. Once, first.
  void choose(std::span<const int64_t> frames);
  // The next chosen frame. All are of one size. Errors as above. REQUIRES: there is one.
  Result<Image> next();

 private:
  struct Impl;
  explicit VideoFile(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::media
