#include "media/audio/mp3_file.h"

#include <mpg123.h>

#include <utility>

#include "base/check.h"
#include "media/audio/containers.h"
#include "media/audio/memory_file.h"

namespace weir::media {

struct Mp3File::State {
  MemoryFile memory{};
  mpg123_handle* handle = nullptr;
  long rate = 0;
  int channels = 0;

  ~State() {
    if (handle != nullptr) mpg123_delete(handle);
  }
};

namespace {

MemoryFile& memory_of(void* data) { return *static_cast<MemoryFile*>(data); }

// False without memory.
bool set_up(mpg123_handle* handle) {
  // Float whatever the file; no tags; nothing on standard error.
  constexpr long kFlags = MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_SKIP_ID3V2;
  const auto read = [](void* data, void* to, size_t count) -> ssize_t {
    return memory_of(data).read(to, static_cast<int64_t>(count));
  };
  const auto seek = [](void* data, off_t offset, int from) -> off_t {
    return memory_of(data).seek(offset, from);
  };
  return mpg123_param(handle, MPG123_ADD_FLAGS, kFlags, 0) == MPG123_OK &&
         mpg123_replace_reader_handle(handle, read, seek, nullptr) == MPG123_OK;
}

}  // namespace

Mp3File::Mp3File(std::unique_ptr<State> state) : state_(std::move(state)) {}
Mp3File::Mp3File(Mp3File&&) noexcept = default;
Mp3File& Mp3File::operator=(Mp3File&&) noexcept = default;
Mp3File::~Mp3File() = default;

Result<Mp3File> Mp3File::open(std::string_view bytes) {
  auto state = std::make_unique<State>();
  state->memory.bytes = bytes;
  state->handle = mpg123_new(nullptr, nullptr);
  if (state->handle == nullptr || !set_up(state->handle))
    return fail(ErrorCode::kCapacity, "no memory for an MP3's decoder");
  int encoding = 0;
  mpg123_frameinfo frame{};
  if (mpg123_open_handle(state->handle, &state->memory) != MPG123_OK ||
      mpg123_getformat(state->handle, &state->rate, &state->channels, &encoding) != MPG123_OK ||
      mpg123_info(state->handle, &frame) != MPG123_OK || frame.layer != 3 || state->rate < 1)
    return damaged(SoundFormat::kMp3, "no frame of layer 3 is found in it");
  CHECK(encoding == MPG123_ENC_FLOAT_32 && (state->channels == 1 || state->channels == 2));
  return Mp3File(std::move(state));
}

int Mp3File::channels() const { return state_->channels; }
int Mp3File::rate() const { return static_cast<int>(state_->rate); }

Result<size_t> Mp3File::read(std::span<float> samples) {
  const size_t frame_bytes = sizeof(float) * static_cast<size_t>(state_->channels);
  for (;;) {
    size_t bytes = 0;
    const int done = mpg123_read(state_->handle, samples.data(), samples.size_bytes(), &bytes);
    if (bytes >= frame_bytes) return bytes / frame_bytes;
    if (done == MPG123_DONE) return size_t{0};
    if (done == MPG123_NEW_FORMAT) {
      long rate = 0;
      int channels = 0, encoding = 0;
      mpg123_getformat(state_->handle, &rate, &channels, &encoding);
      if (rate != state_->rate || channels != state_->channels)
        return damaged(SoundFormat::kMp3, "its rate or its channels change on the way");
    } else if (done != MPG123_OK) {
      // What follows the last frame, as tags do, is no part of the sound.
      if (mpg123_errcode(state_->handle) == MPG123_RESYNC_FAIL) return size_t{0};
      return damaged(SoundFormat::kMp3, mpg123_strerror(state_->handle));
    }
  }
}

}  // namespace weir::media
