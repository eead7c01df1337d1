// Demuxer: the packets of a file's pictures, in the order in which they are decoded. libavformat
// reads from memory and from nothing else: it knows the container beforehand, and is given no way to
// open a file or an address that the bytes may name.
//
// Threads: one at a time.
#pragma once

extern "C" {
#include <libavcodec/packet.h>
#include <libavformat/avformat.h>
}

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "media/video/container.h"

namespace weir::media {

// What libav says of one of its error codes.
std::string text_of_av(int error);

class Demuxer {
 public:
  // Of the stream of pictures that players would show. kInvalid where the file cannot be read;
  // kMediaType where it has no such stream. `bytes` outlive it. `allowed` is asked whenever bytes are
  // read, of the head too; its error becomes that of open() or next().
  static Result<std::unique_ptr<Demuxer>> open(Container container, std::string_view bytes,
                                               std::function<Result<void>()> allowed);
  ~Demuxer();
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  const AVStream& stream() const { return *stream_; }
  // How the pictures are to be turned, as EXIF counts it (image/exif.h).
  int orientation() const;
  // The next packet; false at the end. kInvalid where the file is damaged.
  Result<bool> next(AVPacket& packet);
  // Whether a frame comes of it, at its `pts`: others are only referred to, or cut off.
  bool is_shown(const AVPacket& packet) const;

 private:
  Demuxer(Container container, std::string_view bytes, std::function<Result<void>()> allowed)
      : container_(container), bytes_(bytes), allowed_(std::move(allowed)) {}
  Result<void> open_format();
  Result<void> find_stream();

  // False once it has been refused.
  bool is_allowed();
  tl::unexpected<Error> of_av(int error) const;
  static int interrupted(void* self);
  static int read(void* self, uint8_t* to, int bytes);
  static int64_t seek(void* self, int64_t offset, int whence);

  const Container container_;
  const std::string_view bytes_;
  const std::function<Result<void>()> allowed_;
  std::optional<Error> refusal_{};
  size_t at_ = 0;
  AVIOContext* io_ = nullptr;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
};

}  // namespace weir::media
