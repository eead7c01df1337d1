#include "media/video/libav/demuxer.h"

extern "C" {
#include <libavutil/log.h>
#include <libavutil/mem.h>
}

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "media/video/video_file.h"

namespace weir::media {
namespace {

constexpr int kBufferBytes = 64 << 10;

// Of the process, once: it writes nothing to standard error, and takes no more at once than a file
// within the limits needs.
void set_up_libav() {
  static const bool done = [] {
    av_log_set_callback([](void*, int, const char*, va_list) {});
    av_max_alloc(kAllocationMax);
    return true;
  }();
  static_cast<void>(done);
}

const AVInputFormat* format_of(Container container) {
  constexpr std::array kNames = {"mov", "matroska", "gif"};
  return av_find_input_format(kNames[static_cast<size_t>(container)]);
}

// In place of libavformat's own, for what a file refers to.
int open_nothing(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EACCES);
}

// The matrix by which the file's pictures are shown, row by row (libavutil/display.h); or null.
const uint8_t* display_matrix(const AVStream& stream) {
  constexpr size_t kBytes = 9 * sizeof(int32_t);
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  const AVPacketSideData* data =
      av_packet_side_data_get(stream.codecpar->coded_side_data,
                              stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return data != nullptr && data->size >= kBytes ? data->data : nullptr;
#else
  size_t bytes = 0;
  const uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
  return bytes >= kBytes ? data : nullptr;
#endif
}

}  // namespace

std::string text_of_av(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(error, text.data(), text.size());
  return text.data();
}

Result<std::unique_ptr<Demuxer>> Demuxer::open(Container container, std::string_view bytes,
                                               std::function<Result<void>()> allowed) {
  set_up_libav();
  std::unique_ptr<Demuxer> demuxer(new Demuxer(container, bytes, std::move(allowed)));
  WEIR_TRY(demuxer->open_format());
  WEIR_TRY(demuxer->find_stream());
  return demuxer;
}

Demuxer::~Demuxer() {
  avformat_close_input(&format_);
  if (io_ != nullptr) av_freep(&io_->buffer);
  avio_context_free(&io_);
}

Result<void> Demuxer::open_format() {
  const AVInputFormat* const format = format_of(container_);
  if (format == nullptr)
    return fail(ErrorCode::kUnsupported, concat({"libavformat on this machine reads no ",
                                                 container_name(container_)}));
  auto* const buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
  CHECK(buffer != nullptr);
  io_ = avio_alloc_context(buffer, kBufferBytes, /*write_flag=*/0, this, &read, nullptr, &seek);
  format_ = avformat_alloc_context();
  CHECK(io_ != nullptr && format_ != nullptr);
  format_->pb = io_;
  format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  format_->io_open = &open_nothing;
  format_->interrupt_callback = {.callback = &interrupted, .opaque = this};
  format_->max_streams = kStreamsMax;
  // It frees what it was given where it fails.
  const int error = avformat_open_input(&format_, "", format, nullptr);
  if (refusal_ || error < 0) return of_av(error);
  return {};
}

Result<void> Demuxer::find_stream() {
  const int index =
      av_find_best_stream(format_, AVMEDIA_TYPE_VIDEO, -1, -1, /*decoder=*/nullptr, 0);
  if (index >= 0) stream_ = format_->streams[index];
  if (stream_ == nullptr || (stream_->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0)
    return fail(ErrorCode::kMediaType,
                concat({"expected pictures in the ", container_name(container_), ", found ",
                        format_->nb_streams == 0 ? "nothing" : "none, only sound or text"}));
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (format_->streams[i] != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  if (stream_->time_base.num <= 0 || stream_->time_base.den <= 0)
    return damaged(container_, "it does not say how it counts time");
  return {};
}

int Demuxer::orientation() const {
  const uint8_t* const bytes = display_matrix(*stream_);
  if (bytes == nullptr) return 1;
  // A pixel (x, y) is shown at (a x + c y, b x + d y); the matrix is a b u, c d v, and what moves it.
  std::array<int32_t, 5> matrix{};
  std::memcpy(matrix.data(), bytes, sizeof matrix);
  const int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  if (b == 0 && c == 0) return a >= 0 ? (d >= 0 ? 1 : 4) : (d >= 0 ? 2 : 3);
  if (a != 0 || d != 0) return 1;  // Turned by no whole quarter.
  return b >= 0 ? (c >= 0 ? 5 : 6) : (c >= 0 ? 8 : 7);
}

bool Demuxer::is_shown(const AVPacket& packet) const {
  // VP8 has frames that are only referred to as packets of their own; a bit of their head says so.
  constexpr uint8_t kShown = 0x10;
  if (stream_->codecpar->codec_id == AV_CODEC_ID_VP8 && packet.size > 0 &&
      (packet.data[0] & kShown) == 0)
    return false;
  return (packet.flags & AV_PKT_FLAG_DISCARD) == 0;
}

Result<bool> Demuxer::next(AVPacket& packet) {
  for (;;) {
    av_packet_unref(&packet);
    const int error = av_read_frame(format_, &packet);
    // What could not be read looks like the end to some of libavformat's readers.
    if (refusal_) return of_av(error);
    if (error == AVERROR_EOF) return false;
    if (error < 0) return of_av(error);
    if (packet.stream_index != stream_->index) continue;
    if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0)
      return damaged(container_, "a frame's data are not all there");
    if (is_shown(packet) && packet.pts == AV_NOPTS_VALUE)
      return damaged(container_, "a frame does not say when it is shown");
    return true;
  }
}

bool Demuxer::is_allowed() {
  if (refusal_) return false;
  auto allowed = allowed_();
  if (!allowed) refusal_ = std::move(allowed).error();
  return !refusal_;
}

tl::unexpected<Error> Demuxer::of_av(int error) const {
  if (refusal_) return tl::unexpected<Error>(*refusal_);
  return damaged(container_, text_of_av(error));
}

int Demuxer::interrupted(void* self) {
  return static_cast<Demuxer*>(self)->is_allowed() ? 0 : 1;
}

int Demuxer::read(void* self, uint8_t* to, int bytes) {
  auto& demuxer = *static_cast<Demuxer*>(self);
  if (!demuxer.is_allowed()) return AVERROR_EXIT;
  const size_t count = std::min(demuxer.bytes_.size() - demuxer.at_, static_cast<size_t>(bytes));
  if (count == 0) return AVERROR_EOF;
  std::memcpy(to, demuxer.bytes_.data() + demuxer.at_, count);
  demuxer.at_ += count;
  return static_cast<int>(count);
}

int64_t Demuxer::seek(void* self, int64_t offset, int whence) {
  auto& demuxer = *static_cast<Demuxer*>(self);
  const auto size = static_cast<int64_t>(demuxer.bytes_.size());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  const int64_t base = whence == SEEK_SET   ? 0
                       : whence == SEEK_CUR ? static_cast<int64_t>(demuxer.at_)
                                            : size;
  if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) return AVERROR(EINVAL);
  if (offset < -base || offset > size - base) return AVERROR(EINVAL);
  demuxer.at_ = static_cast<size_t>(base + offset);
  return base + offset;
}

}  // namespace weir::media
