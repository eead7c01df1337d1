#include "media/video/libav/decoder.h"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "media/video/libav/demuxer.h"
#include "media/video/video_file.h"

namespace weir::media {
namespace {

// What is decoded, by which decoder. Others of libavcodec's are never reached by a file.
struct Codec {
  AVCodecID id;
  const char* decoder;
  const char* name;
  // Pictures that it keeps at most: of H.264 and HEVC the size of the decoder's own table; of the
  // others those that may be referred to, the one in the making, the one handed out, and one more.
  int pictures;
};

constexpr Codec kCodecs[] = {
    {AV_CODEC_ID_H264, "h264", "H.264", 36}, {AV_CODEC_ID_HEVC, "hevc", "HEVC", 32},
    {AV_CODEC_ID_VP8, "vp8", "VP8", 6},      {AV_CODEC_ID_VP9, "vp9", "VP9", 11},
    {AV_CODEC_ID_AV1, "libdav1d", "AV1", 11}, {AV_CODEC_ID_MPEG4, "mpeg4", "MPEG-4", 6},
    {AV_CODEC_ID_GIF, "gif", "GIF", 3},
};

// What a decoder keeps beside pixels, of each picture: vectors of motion, kinds of blocks.
constexpr int64_t with_tables(int64_t bytes) { return bytes + bytes / 2; }

Result<const Codec*> codec_of(Container container, AVCodecID id) {
  for (const Codec& codec : kCodecs)
    if (codec.id == id) return &codec;
  return fail(ErrorCode::kMediaType,
              concat({"the ", container_name(container), " has pictures in ", avcodec_get_name(id),
                      "; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and GIF are decoded"}));
}

Result<void> check_frame_size(Container container, int64_t width, int64_t height,
                              const VideoLimits& limits) {
  // MPEG-4's header says nothing: the first frame does.
  if (width == 0 && height == 0) return {};
  const std::string found =
      concat({"the ", container_name(container), " says that its frames have ",
              std::to_string(width), " x ", std::to_string(height), " pixels"});
  if (width < 1 || height < 1)
    return fail(ErrorCode::kInvalid, concat({found, "; at least 1 x 1 was expected"}));
  if (height > limits.pixels_max / width || std::max(width, height) > limits.side_max)
    return fail(ErrorCode::kTooLarge,
                concat({found, "; at most ", std::to_string(limits.pixels_max), ", and ",
                        std::to_string(limits.side_max), " a side, are decoded"}));
  return {};
}

}  // namespace

Result<void> Decoder::check(Container container, const AVCodecParameters& of,
                            const VideoLimits& limits) {
  WEIR_ASSIGN(const Codec* const codec, codec_of(container, of.codec_id));
  WEIR_TRY(check_frame_size(container, of.width, of.height, limits));
  if (avcodec_find_decoder_by_name(codec->decoder) != nullptr) return {};
  return fail(ErrorCode::kUnsupported, concat({"libavcodec on this machine decodes no ", codec->name}));
}

Result<std::unique_ptr<Decoder>> Decoder::open(Container container, const AVCodecParameters& of,
                                               const VideoLimits& limits) {
  WEIR_TRY(check(container, of, limits));
  const Codec& codec = **codec_of(container, of.codec_id);
  const AVCodec* const found = avcodec_find_decoder_by_name(codec.decoder);
  std::unique_ptr<Decoder> decoder(new Decoder(container, limits));
  decoder->pictures_ = codec.pictures;
  int64_t pixels_max = limits.pixels_max;
  // AV1's decoder takes memory without asking, so what the header says is the most: at most 10 bits
  // of a colour in 16, two of the three colours at a quarter of the size, sides padded to blocks.
  if (codec.id == AV_CODEC_ID_AV1) {
    constexpr int64_t kBlock = 128;
    if (of.width > 0) pixels_max = (of.width + kBlock) * (of.height + kBlock);
    WEIR_TRY(decoder->admit(with_tables(codec.pictures * 3 * pixels_max) +
                            decoder->held_bytes(pixels_max)));
  }
  AVCodecContext* const context = avcodec_alloc_context3(found);
  CHECK(context != nullptr);
  decoder->context_ = context;
  if (const int error = avcodec_parameters_to_context(context, &of); error < 0)
    return damaged(container, text_of_av(error));
  context->thread_count = 1;
  context->max_pixels = pixels_max;
  context->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  context->opaque = decoder.get();
  context->get_buffer2 = &get_buffer;
  if (const int error = avcodec_open2(context, found, nullptr); error < 0)
    return damaged(container, text_of_av(error));
  return decoder;
}

Decoder::~Decoder() { avcodec_free_context(&context_); }

Result<void> Decoder::send(const AVPacket* packet, bool wanted) {
  context_->skip_frame = wanted ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
  const int error = avcodec_send_packet(context_, packet);
  if (error < 0 && error != AVERROR_EOF) return of_av(error);
  return {};
}

Result<bool> Decoder::receive(AVFrame& frame) {
  const int error = avcodec_receive_frame(context_, &frame);
  if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return false;
  if (error < 0) return of_av(error);
  if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0)
    return damaged(container_, "a frame cannot be decoded whole");
  WEIR_TRY(check_frame_size(container_, frame.width, frame.height, limits_));
  return true;
}

void Decoder::forget() { avcodec_flush_buffers(context_); }

int64_t Decoder::held_bytes(int64_t pixels) const {
  return 3 * pixels * (limits_.frames_held + 2);
}

Result<void> Decoder::admit(int64_t bytes) {
  if (bytes <= admitted_) return {};
  const int64_t more = bytes - std::exchange(admitted_, bytes);
  return limits_.admit ? limits_.admit(static_cast<size_t>(more)) : Result<void>();
}

tl::unexpected<Error> Decoder::of_av(int error) {
  if (refusal_) return tl::unexpected<Error>(*std::exchange(refusal_, std::nullopt));
  return damaged(container_, text_of_av(error));
}

int Decoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  auto& decoder = *static_cast<Decoder*>(context->opaque);
  int width = frame->width, height = frame->height;
  avcodec_align_dimensions(context, &width, &height);
  constexpr int kAlignment = 64;
  const int64_t bytes = av_image_get_buffer_size(static_cast<AVPixelFormat>(frame->format), width,
                                                 height, kAlignment);
  if (bytes < 0) return static_cast<int>(bytes);
  const int64_t held = decoder.held_bytes(int64_t{width} * height);
  if (auto admitted = decoder.admit(with_tables(decoder.pictures_ * bytes) + held); !admitted) {
    decoder.refusal_ = std::move(admitted).error();
    return AVERROR(ENOMEM);
  }
  return avcodec_default_get_buffer2(context, frame, flags);
}

}  // namespace weir::media
