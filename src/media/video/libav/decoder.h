// Decoder: packets of a file's pictures to frames, by those of libavcodec's decoders that are named
// here and no others, on the caller's thread alone.
//
// Threads: one at a time.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "media/video/container.h"

namespace weir::media {

struct VideoLimits;

class Decoder {
 public:
  // Whether open() would take the stream, by what its header says: kMediaType for an encoding that
  // none of the decoders reads; kTooLarge for frames beyond the limits.
  static Result<void> check(Container container, const AVCodecParameters& of,
                            const VideoLimits& limits);
  // Errors are check()'s. `limits` outlives it, and is asked for what frames take. `allowed` is asked
  // before each picture, shown or not; its error becomes that of send() or receive().
  static Result<std::unique_ptr<Decoder>> open(Container container, const AVCodecParameters& of,
                                               const VideoLimits& limits,
                                               std::function<Result<void>()> allowed);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Null: no more come. Frames that no other refers to are not decoded where nothing is `wanted` of
  // them. REQUIRES: receive() has said that there is no frame. kInvalid for damaged data.
  Result<void> send(const AVPacket* packet, bool wanted);
  // The next frame in the order in which they are shown; false: packets must come first, or, after
  // the last one, there are no more.
  Result<bool> receive(AVFrame& frame);
  // Forgets all packets: what comes next begins with a frame that refers to none before it.
  void forget();

 private:
  Decoder(Container container, const VideoLimits& limits, std::function<Result<void>()> allowed)
      : container_(container), limits_(limits), allowed_(std::move(allowed)) {}
  // Beside what the decoder keeps: frames as rows of colours, one of them also as it was and one as
  // it is turned.
  int64_t held_bytes(int64_t pixels) const;
  Result<void> admit(int64_t bytes);
  // The next unit of `rest_`, which is not empty.
  Result<void> send_unit();
  Result<void> begin_sequence(std::string_view payload);
  tl::unexpected<Error> of_av(int error);
  // For libavcodec, which knows numbers only: keeps the first error.
  int refuse(Error error, int number);
  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags);

  const Container container_;
  const VideoLimits& limits_;
  const std::function<Result<void>()> allowed_;
  AVCodecContext* context_ = nullptr;
  // Of AV1: what of the last packet is still to be sent, and what is being sent.
  AVPacket* rest_ = nullptr;
  AVPacket* unit_ = nullptr;
  int pictures_ = 0;         // That the decoder keeps at most.
  int64_t admitted_ = 0;     // Bytes.
  std::optional<Error> refusal_{};
};

}  // namespace weir::media
