// VideoFile of a program that is built without libavformat: there is none.
#include "base/check.h"
#include "media/video/video_file.h"

namespace weir::media {

struct VideoFile::Impl {};

Result<void> check_reads_videos() {
  return fail(ErrorCode::kUnsupported,
              "this server is built without libavformat (the build option WEIR_VIDEO) and decodes no "
              "MP4, WebM or GIF: send the frames, as {\"type\": \"video\", \"video\": [images], "
              "\"fps\": N}");
}

Result<VideoFile> VideoFile::open(std::string_view, const VideoLimits&) {
  return tl::unexpected<Error>(check_reads_videos().error());
}

VideoFile::VideoFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoFile::VideoFile(VideoFile&&) noexcept = default;
VideoFile& VideoFile::operator=(VideoFile&&) noexcept = default;
VideoFile::~VideoFile() = default;

int64_t VideoFile::frames() const { return 0; }
double VideoFile::rate() const { return 0; }
void VideoFile::choose(std::span<const int64_t>) { CHECK(false); }
Result<Image> VideoFile::next() { return tl::unexpected<Error>(check_reads_videos().error()); }

}  // namespace weir::media
