// VideoFile by libavformat, libavcodec and libswscale. The file is demultiplexed twice: first to
// count its frames and to see when each is shown, then to decode.
#include "media/video/video_file.h"

#include <time.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "media/first_bytes.h"
#include "media/image/exif.h"
#include "media/video/container.h"
#include "media/video/libav/decoder.h"
#include "media/video/libav/demuxer.h"
#include "media/video/libav/frame_image.h"

namespace weir::media {
namespace {

constexpr int64_t kBeforeAll = std::numeric_limits<int64_t>::min();

struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};

// Of this thread: a busy machine makes no video longer.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string seconds_text(double seconds) {
  return std::to_string(static_cast<int64_t>(std::min(seconds, 1e15))) + " s";
}

}  // namespace

struct VideoFile::Impl {
  Impl(Container of, std::string_view of_bytes, const VideoLimits& of_limits)
      : container(of), bytes(of_bytes), limits(of_limits) {
    CHECK(packet != nullptr && frame != nullptr);
  }

  Result<void> check_time() const;
  std::function<Result<void>()> time_check() const {
    return [this] { return check_time(); };
  }
  Result<void> begin_decoding();
  Result<void> scan();
  Result<void> count(const AVPacket& found);
  Result<void> measure(const AVRational& base);
  void pass_over_to(int64_t time);
  Result<void> send_next();
  Result<void> decode_to(int64_t time);
  bool is_chosen(int64_t time) const { return std::ranges::binary_search(chosen, time); }

  const Container container;
  const std::string_view bytes;
  const VideoLimits limits;
  double spent = 0;  // Of processor time, by calls before this one,
  double began = 0;  // and when this one began.

  // When frames are shown, in the stream's units, ascending; and those that refer to none before.
  std::vector<int64_t> times{}, keys{};
  int64_t end = kBeforeAll;  // Of the last frame.
  double rate = 0;

  std::unique_ptr<Demuxer> demuxer{};
  std::unique_ptr<Decoder> decoder{};
  FrameImage image{};
  int orientation = 1;
  std::unique_ptr<AVPacket, FreePacket> packet{av_packet_alloc()};
  std::unique_ptr<AVFrame, FreeFrame> frame{av_frame_alloc()};
  std::vector<int64_t> chosen{};  // Their times.
  size_t given = 0;               // Of those.
  int64_t shown = kBeforeAll;     // The time of `frame`, if there is one.
  int width = 0, height = 0;      // Of the first frame.
  int64_t begin = kBeforeAll;     // What is shown before that is passed over,
  bool waits = false;             // and all before the packet that begins there.
  int64_t last_key = kBeforeAll;  // That was sent.
  bool passes_over = true;        // What is before a frame that refers to none before.
  bool ended = false;
};

Result<void> VideoFile::Impl::check_time() const {
  if (limits.stopped && limits.stopped())
    return fail(ErrorCode::kCancelled, "The client has left.");
  if (spent + processor_seconds() - began <= limits.decode_seconds_max) return {};
  return fail(ErrorCode::kTooLarge,
              concat({"decoding the ", container_name(container), " takes more than the ",
                      seconds_text(limits.decode_seconds_max),
                      " of processor time that a video gets: send a shorter or a smaller one"}));
}

Result<void> VideoFile::Impl::count(const AVPacket& found) {
  if (std::ssize(times) == limits.frames_max)
    return fail(ErrorCode::kTooLarge,
                concat({"the ", container_name(container), " has more than ",
                        std::to_string(limits.frames_max), " frames, which is the most"}));
  // Far from where sums of times would overflow.
  constexpr int64_t kTimeMax = int64_t{1} << 60;
  if (found.pts < -kTimeMax || found.pts > kTimeMax || found.duration > kTimeMax)
    return damaged(container, "a frame's time is beyond all bounds");
  times.push_back(found.pts);
  end = std::max(end, found.pts + std::max<int64_t>(found.duration, 0));
  // Pictures of a GIF are painted over the one before.
  if (container != Container::kGif && (found.flags & AV_PKT_FLAG_KEY) != 0)
    keys.push_back(found.pts);
  return {};
}

Result<void> VideoFile::Impl::scan() {
  WEIR_ASSIGN(const std::unique_ptr<Demuxer> reader, Demuxer::open(container, bytes, time_check()));
  // Refused by what the header says, if it is.
  WEIR_TRY(Decoder::check(container, *reader->stream().codecpar, limits));
  for (;;) {
    WEIR_TRY(check_time());
    WEIR_ASSIGN(const bool found, reader->next(*packet));
    if (!found) break;
    if (reader->is_shown(*packet)) WEIR_TRY(count(*packet));
  }
  if (times.empty())
    return fail(ErrorCode::kInvalid,
                concat({"the ", container_name(container), " has no frame; at least one was expected"}));
  std::ranges::sort(times);
  std::ranges::sort(keys);
  return measure(reader->stream().time_base);
}

// Their number by how long they are shown, as the references' reader (torchcodec) counts it.
Result<void> VideoFile::Impl::measure(const AVRational& base) {
  const auto count = static_cast<double>(times.size());
  auto units = static_cast<double>(end - times.front());
  const auto between = static_cast<double>(times.back() - times.front());
  // Nothing is said of the last one: it is shown as long as the others are.
  if (end == times.back() && times.size() > 1) units = between * count / (count - 1);
  if (times.size() > 1 && between <= 0)
    return damaged(container, concat({"all of its ", std::to_string(times.size()),
                                      " frames are shown at the same time"}));
  const double seconds = units * base.num / base.den;
  if (seconds > static_cast<double>(limits.seconds_max))
    return fail(ErrorCode::kTooLarge,
                concat({"the ", container_name(container), " lasts ", seconds_text(seconds),
                        "; at most ", std::to_string(limits.seconds_max), " s are read"}));
  rate = seconds > 0 ? count / seconds : 1;
  return {};
}

// At the file's beginning.
Result<void> VideoFile::Impl::begin_decoding() {
  WEIR_ASSIGN(demuxer, Demuxer::open(container, bytes, time_check()));
  orientation = demuxer->orientation();
  if (decoder) {
    decoder->forget();
  } else {
    WEIR_ASSIGN(decoder, Decoder::open(container, *demuxer->stream().codecpar, limits,
                                       time_check()));
  }
  shown = begin = last_key = kBeforeAll;
  waits = ended = false;
  return {};
}

// Where decoding may begin anew after what has been sent, and still comes by `time`, it does.
void VideoFile::Impl::pass_over_to(int64_t time) {
  if (!passes_over) return;
  const auto after = std::ranges::upper_bound(keys, time);
  if (after == keys.begin() || *(after - 1) <= last_key) return;
  begin = *(after - 1);
  waits = true;
  decoder->forget();
}

Result<void> VideoFile::Impl::send_next() {
  for (;;) {
    WEIR_TRY(check_time());
    WEIR_ASSIGN(const bool found, demuxer->next(*packet));
    if (!found) {
      ended = true;
      return decoder->send(nullptr, true);
    }
    const bool is_key = (packet->flags & AV_PKT_FLAG_KEY) != 0 && demuxer->is_shown(*packet);
    if (waits && !(is_key && packet->pts == begin)) continue;
    waits = false;
    // Frames before it in time, and after it in the file, refer to what was passed over.
    if (packet->pts != AV_NOPTS_VALUE && packet->pts < begin) continue;
    if (is_key) last_key = std::max(last_key, packet->pts);
    return decoder->send(packet.get(), is_chosen(packet->pts));
  }
}

// Until `frame` is the one that is shown at this time. Decoders leave out frames that refer to some
// which they have not got: where the file said wrongly that none before was needed, all are decoded.
Result<void> VideoFile::Impl::decode_to(int64_t time) {
  while (shown < time) {
    WEIR_ASSIGN(const bool found, decoder->receive(*frame));
    if (found) {
      shown = frame->pts != AV_NOPTS_VALUE ? frame->pts : frame->best_effort_timestamp;
      if (shown <= time) continue;
    }
    if ((found || ended) && passes_over && begin > times.front()) {
      passes_over = false;
      WEIR_TRY(begin_decoding());
      continue;
    }
    if (found) {
      const auto place = std::ranges::lower_bound(times, time) - times.begin();
      return damaged(container, concat({"frame ", std::to_string(place + 1), " of its ",
                                        std::to_string(times.size()), " cannot be decoded"}));
    }
    if (ended)
      return damaged(container, concat({"it says that it has ", std::to_string(times.size()),
                                        " frames, and the last ones cannot be decoded"}));
    WEIR_TRY(send_next());
  }
  if (width == 0) {
    width = frame->width;
    height = frame->height;
  }
  if (frame->width == width && frame->height == height) return {};
  return fail(ErrorCode::kMediaType,
              concat({"expected all frames of the ", container_name(container), " to have ",
                      std::to_string(width), " x ", std::to_string(height), " pixels, found one of ",
                      std::to_string(frame->width), " x ", std::to_string(frame->height)}));
}

Result<void> check_reads_videos() { return {}; }

Result<VideoFile> VideoFile::open(std::string_view bytes, const VideoLimits& limits) {
  WEIR_TRY(check_file_size(FileKind::kVideo, bytes.size(), limits.file_bytes_max));
  const std::optional<Container> container = container_of(bytes);
  if (!container) return refuse_format(FileKind::kVideo, bytes, "MP4, WebM and GIF are read");
  WEIR_TRY(check_whole(*container, bytes));
  WEIR_ASSIGN(const size_t tables, table_bytes(*container, bytes, limits.frames_max));
  if (limits.admit) WEIR_TRY(limits.admit(kDemuxerBytes + tables));
  auto impl = std::make_unique<Impl>(*container, bytes, limits);
  impl->began = processor_seconds();
  WEIR_TRY(impl->scan());
  impl->spent += processor_seconds() - impl->began;
  return VideoFile(std::move(impl));
}

VideoFile::VideoFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoFile::VideoFile(VideoFile&&) noexcept = default;
VideoFile& VideoFile::operator=(VideoFile&&) noexcept = default;
VideoFile::~VideoFile() = default;

int64_t VideoFile::frames() const { return std::ssize(impl_->times); }
double VideoFile::rate() const { return impl_->rate; }

void VideoFile::choose(std::span<const int64_t> frames) {
  CHECK(impl_->chosen.empty());
  for (const int64_t frame : frames) impl_->chosen.push_back(impl_->times[static_cast<size_t>(frame)]);
}

Result<Image> VideoFile::next() {
  Impl& impl = *impl_;
  CHECK(impl.given < impl.chosen.size());
  impl.began = processor_seconds();
  if (!impl.decoder) WEIR_TRY(impl.begin_decoding());
  const int64_t time = impl.chosen[impl.given++];
  impl.pass_over_to(time);
  WEIR_TRY(impl.decode_to(time));
  WEIR_ASSIGN(Image image, impl.image.convert(*impl.frame));
  impl.spent += processor_seconds() - impl.began;
  return upright(std::move(image), impl.orientation);
}

}  // namespace weir::media
