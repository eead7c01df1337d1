// FrameImage: frames as decoders give them to pictures of red, green and blue, by libswscale.
//
// Threads: one at a time.
#pragma once

extern "C" {
#include <libavutil/frame.h>
}

#include <memory>

#include "base/result.h"
#include "media/image/image.h"

struct SwsContext;

namespace weir::media {

class FrameImage {
 public:
  FrameImage() = default;
  ~FrameImage();
  FrameImage(const FrameImage&) = delete;
  FrameImage& operator=(const FrameImage&) = delete;

  // By the colours that the frame says it has; those of standard definition where it says nothing.
  // kMediaType for a form of pixels that libswscale does not read; kTooLarge beyond kAllocationMax.
  Result<Image> convert(const AVFrame& frame);

 private:
  SwsContext* scaler_ = nullptr;  // For frames like the last one.
  AVFrame* rows_ = nullptr;       // Padded, as libswscale writes beyond the ends of rows.
};

}  // namespace weir::media
