#include "media/video/libav/decoder.h"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "media/video/av1_units.h"
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

// Sides of what AV1 is decoded into are multiples of that.
constexpr int64_t kAv1Block = 128;

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
                                               const VideoLimits& limits,
                                               std::function<Result<void>()> allowed) {
  WEIR_TRY(check(container, of, limits));
  const Codec& codec = **codec_of(container, of.codec_id);
  const AVCodec* const found = avcodec_find_decoder_by_name(codec.decoder);
  std::unique_ptr<Decoder> decoder(new Decoder(container, limits, std::move(allowed)));
  decoder->pictures_ = codec.pictures;
  int64_t pixels_max = limits.pixels_max;
  if (codec.id == AV_CODEC_ID_AV1) {
    // Frames may not be larger than the container says, up to their last block.
    if (of.width > 0)
      pixels_max = std::min(pixels_max, (of.width + kAv1Block) * (of.height + kAv1Block));
    decoder->rest_ = av_packet_alloc();
    decoder->unit_ = av_packet_alloc();
    CHECK(decoder->rest_ != nullptr && decoder->unit_ != nullptr);
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

Decoder::~Decoder() {
  avcodec_free_context(&context_);
  av_packet_free(&rest_);
  av_packet_free(&unit_);
}

Result<void> Decoder::send(const AVPacket* packet, bool wanted) {
  context_->skip_frame = wanted ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
  if (rest_ != nullptr && packet != nullptr) {
    CHECK(rest_->size == 0 && av_packet_ref(rest_, packet) >= 0);
    if (rest_->size > 0) return send_unit();
  }
  const int error = avcodec_send_packet(context_, packet);
  // Some decoders go on after a picture for which they were given no room.
  if (refusal_ || (error < 0 && error != AVERROR_EOF)) return of_av(error);
  return {};
}

// A packet of AV1 may hold any number of frames that are not shown, and its decoder asks nothing
// before them: so it gets them one by one.
Result<void> Decoder::send_unit() {
  WEIR_TRY(allowed_());
  const std::optional<Av1Unit> unit = first_av1_unit(
      {reinterpret_cast<const char*>(rest_->data), static_cast<size_t>(rest_->size)});
  if (!unit) return damaged(container_, "a unit of AV1 goes beyond its packet");
  if (unit->begins_sequence) WEIR_TRY(begin_sequence(unit->payload));
  av_packet_unref(unit_);
  CHECK(av_packet_ref(unit_, rest_) >= 0);
  unit_->size = static_cast<int>(unit->bytes);
  rest_->data += unit->bytes;
  rest_->size -= unit_->size;
  if (rest_->size == 0) av_packet_unref(rest_);
  const int error = avcodec_send_packet(context_, unit_);
  if (error < 0) return of_av(error);
  return {};
}

// AV1's decoder takes memory without asking, so that what the sequence allows is the most: at most 10
// bits of a colour in 16, two of the three colours at a quarter of the size, sides padded to blocks.
// Among frames of so many pixels those take most that are as long or as high as they may be.
Result<void> Decoder::begin_sequence(std::string_view payload) {
  const std::optional<Av1Sequence> sequence = read_av1_sequence(payload);
  if (!sequence) return damaged(container_, "the head of a sequence of AV1 ends early");
  if (sequence->profile != 0)
    return fail(ErrorCode::kMediaType,
                concat({"the ", container_name(container_), " has AV1 of profile ",
                        std::to_string(sequence->profile), "; profile 0 (4:2:0) is decoded"}));
  const int64_t width = sequence->width_max, height = sequence->height_max;
  const int64_t area = std::min(context_->max_pixels, width * height);
  const auto padded = [&](int64_t side) {
    return (side + kAv1Block) * ((area + side - 1) / side + kAv1Block);
  };
  const int64_t pixels = std::max(padded(std::min(width, area)), padded(std::min(height, area)));
  return admit(with_tables(pictures_ * 3 * pixels) + held_bytes(area));
}

Result<bool> Decoder::receive(AVFrame& frame) {
  int error = avcodec_receive_frame(context_, &frame);
  while (error == AVERROR(EAGAIN) && rest_ != nullptr && rest_->size > 0) {
    WEIR_TRY(send_unit());
    error = avcodec_receive_frame(context_, &frame);
  }
  if (refusal_) return of_av(error);
  if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return false;
  if (error < 0) return of_av(error);
  if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0)
    return damaged(container_, "a frame cannot be decoded whole");
  WEIR_TRY(check_frame_size(container_, frame.width, frame.height, limits_));
  return true;
}

void Decoder::forget() {
  if (rest_ != nullptr) av_packet_unref(rest_);
  avcodec_flush_buffers(context_);
}

int64_t Decoder::held_bytes(int64_t pixels) const {
  return 3 * pixels * (limits_.frames_held + 2);
}

Result<void> Decoder::admit(int64_t bytes) {
  if (bytes <= admitted_) return {};
  const int64_t more = bytes - std::exchange(admitted_, bytes);
  return limits_.admit ? limits_.admit(static_cast<size_t>(more)) : Result<void>();
}

tl::unexpected<Error> Decoder::of_av(int error) {
  if (refusal_) return tl::unexpected<Error>(*refusal_);
  return damaged(container_, text_of_av(error));
}

int Decoder::refuse(Error error, int number) {
  refusal_ = std::move(error);
  return number;
}

int Decoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  auto& decoder = *static_cast<Decoder*>(context->opaque);
  // One packet may hold very many pictures.
  if (decoder.refusal_) return AVERROR_EXIT;
  if (auto allowed = decoder.allowed_(); !allowed)
    return decoder.refuse(std::move(allowed).error(), AVERROR_EXIT);
  int width = frame->width, height = frame->height;
  avcodec_align_dimensions(context, &width, &height);
  constexpr int kAlignment = 64;
  const int64_t bytes = av_image_get_buffer_size(static_cast<AVPixelFormat>(frame->format), width,
                                                 height, kAlignment);
  if (bytes < 0) return static_cast<int>(bytes);
  const int64_t held = decoder.held_bytes(int64_t{width} * height);
  if (auto admitted = decoder.admit(with_tables(decoder.pictures_ * bytes) + held); !admitted)
    return decoder.refuse(std::move(admitted).error(), AVERROR(ENOMEM));
  return avcodec_default_get_buffer2(context, frame, flags);
}

}  // namespace weir::media
