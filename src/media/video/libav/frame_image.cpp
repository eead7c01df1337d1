#include "media/video/libav/frame_image.h"

extern "C" {
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <algorithm>

#include "base/check.h"
#include "base/concat.h"

namespace weir::media {

FrameImage::~FrameImage() {
  sws_freeContext(scaler_);
  av_frame_free(&rows_);
}

Result<Image> FrameImage::convert(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  // The same numbers on every processor.
  constexpr int kFlags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT;
  scaler_ = sws_getCachedContext(scaler_, frame.width, frame.height, format, frame.width,
                                 frame.height, AV_PIX_FMT_RGB24, kFlags, nullptr, nullptr, nullptr);
  if (scaler_ == nullptr) {
    const char* const name = av_get_pix_fmt_name(format);
    return fail(ErrorCode::kMediaType,
                concat({"the video's pixels are ", name != nullptr ? name : "of no known form",
                        ", which is not read"}));
  }
  const bool full = frame.color_range == AVCOL_RANGE_JPEG;
  const int* const colours = sws_getCoefficients(frame.colorspace);
  constexpr int kOne = 1 << 16;
  // Of no effect where the frame is red, green and blue already; it says so by an error.
  sws_setColorspaceDetails(scaler_, colours, full, colours, /*dstRange=*/1, /*brightness=*/0, kOne,
                           kOne);
  if (rows_ == nullptr || rows_->width != frame.width || rows_->height != frame.height) {
    av_frame_free(&rows_);
    rows_ = av_frame_alloc();
    CHECK(rows_ != nullptr);
    rows_->format = AV_PIX_FMT_RGB24;
    rows_->width = frame.width;
    rows_->height = frame.height;
    if (av_frame_get_buffer(rows_, 0) < 0) {
      av_frame_free(&rows_);
      return fail(ErrorCode::kTooLarge, "the video's frames take more memory than one may");
    }
  }
  sws_scale(scaler_, frame.data, frame.linesize, 0, frame.height, rows_->data, rows_->linesize);
  Image image(frame.width, frame.height);
  for (int y = 0; y < image.height; ++y)
    std::copy_n(rows_->data[0] + static_cast<ptrdiff_t>(y) * rows_->linesize[0],
                3 * static_cast<size_t>(image.width), image.row(y));
  return image;
}

}  // namespace weir::media
