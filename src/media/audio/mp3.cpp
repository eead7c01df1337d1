// MP3 by mpg123.
#include <mpg123.h>

#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "media/audio/decoders.h"
#include "media/audio/memory_file.h"

namespace weir::media {
namespace {

struct DeleteHandle {
  void operator()(mpg123_handle* handle) const { mpg123_delete(handle); }
};
using Handle = std::unique_ptr<mpg123_handle, DeleteHandle>;

MemoryFile& file_of(void* data) { return *static_cast<MemoryFile*>(data); }

// False without memory.
bool set_up(mpg123_handle* handle) {
  // Float whatever the file; no tags; nothing on standard error, where each damaged frame of a
  // stranger's file would give a line.
  constexpr long kFlags = MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_SKIP_ID3V2;
  const auto read = [](void* data, void* to, size_t count) -> ssize_t {
    return file_of(data).read(to, static_cast<int64_t>(count));
  };
  const auto seek = [](void* data, off_t offset, int from) -> off_t {
    return file_of(data).seek(offset, from);
  };
  return mpg123_param(handle, MPG123_ADD_FLAGS, kFlags, 0) == MPG123_OK &&
         mpg123_replace_reader_handle(handle, read, seek, nullptr) == MPG123_OK;
}

struct Format {
  long rate = 0;
  int channels = 0;
  int encoding = 0;
  bool operator==(const Format&) const = default;
};

bool get_format(mpg123_handle* handle, Format& format) {
  return mpg123_getformat(handle, &format.rate, &format.channels, &format.encoding) == MPG123_OK;
}

// Up to the end, or to an error, which the last call's answer is.
Result<int> read_samples(mpg123_handle* handle, const Format& format, SoundBuilder& out) {
  std::vector<float> samples(kBlockFrames * out.channels());
  const size_t frame_bytes = sizeof(float) * out.channels();
  for (;;) {
    size_t bytes = 0;
    const int done = mpg123_read(handle, samples.data(), samples.size() * sizeof(float), &bytes);
    WEIR_TRY(out.add(std::span(samples).first(bytes / frame_bytes * out.channels())));
    if (done == MPG123_NEW_FORMAT) {
      Format other;
      if (!get_format(handle, other) || other != format)
        return damaged(SoundFormat::kMp3, "its rate or its channels change on the way");
    } else if (done != MPG123_OK) {
      return done;
    }
  }
}

}  // namespace

Result<void> decode_mp3(std::string_view bytes, SoundBuilder& out) {
  MemoryFile file{bytes};
  const Handle handle(mpg123_new(nullptr, nullptr));
  if (!handle || !set_up(handle.get()))
    return fail(ErrorCode::kCapacity, "no memory for an MP3's decoder");
  Format format;
  mpg123_frameinfo frame{};
  if (mpg123_open_handle(handle.get(), &file) != MPG123_OK || !get_format(handle.get(), format) ||
      mpg123_info(handle.get(), &frame) != MPG123_OK || frame.layer != 3)
    return damaged(SoundFormat::kMp3, "no frame of layer 3 is found in it");
  CHECK(format.encoding == MPG123_ENC_FLOAT_32);
  // How many frames there are is not known: what a header says of it may be a guess.
  WEIR_TRY(out.begin(format.channels, format.rate, std::nullopt));
  WEIR_ASSIGN(const int done, read_samples(handle.get(), format, out));
  // What follows the last frame, as tags do, is no part of the sound.
  if (done == MPG123_DONE || mpg123_errcode(handle.get()) == MPG123_RESYNC_FAIL) return {};
  return damaged(SoundFormat::kMp3, mpg123_strerror(handle.get()));
}

}  // namespace weir::media
