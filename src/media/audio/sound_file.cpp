#include "media/audio/sound_file.h"

#include <sndfile.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "media/audio/containers.h"
#include "media/audio/memory_file.h"

namespace weir::media {

namespace {

MemoryFile& memory_of(void* data) { return *static_cast<MemoryFile*>(data); }

SF_VIRTUAL_IO reading() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* data) { return static_cast<sf_count_t>(memory_of(data).bytes.size()); };
  io.seek = [](sf_count_t offset, int from, void* data) -> sf_count_t {
    return memory_of(data).seek(offset, from);
  };
  io.read = [](void* to, sf_count_t count, void* data) -> sf_count_t {
    return memory_of(data).read(to, count);
  };
  io.write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; };
  io.tell = [](void* data) { return static_cast<sf_count_t>(memory_of(data).at); };
  return io;
}

// Whether libsndfile found in the bytes what their beginning says.
bool is(SoundFormat format, int found) {
  const int container = found & SF_FORMAT_TYPEMASK, encoding = found & SF_FORMAT_SUBMASK;
  switch (format) {
    case SoundFormat::kWav:
      return container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX;
    case SoundFormat::kFlac:
      return container == SF_FORMAT_FLAC;
    case SoundFormat::kVorbis:
      return container == SF_FORMAT_OGG && encoding == SF_FORMAT_VORBIS;
    case SoundFormat::kOpus:
      return container == SF_FORMAT_OGG && encoding == SF_FORMAT_OPUS;
    case SoundFormat::kMp3:  // Mp3File's.
      break;
  }
  return false;
}

}  // namespace

struct SoundFile::State {
  SoundFormat format{};
  MemoryFile memory{};
  SF_INFO info{};
  SNDFILE* file = nullptr;

  ~State() {
    if (file != nullptr) sf_close(file);
  }
};

SoundFile::SoundFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SoundFile::SoundFile(SoundFile&&) noexcept = default;
SoundFile& SoundFile::operator=(SoundFile&&) noexcept = default;
SoundFile::~SoundFile() = default;

Result<SoundFile> SoundFile::open(SoundFormat format, std::string_view bytes) {
  auto state = std::make_unique<State>();
  state->format = format;
  state->memory.bytes = bytes;
  SF_VIRTUAL_IO io = reading();
  state->file = sf_open_virtual(&io, SFM_READ, &state->info, &state->memory);
  // Why not, libsndfile keeps in a variable that threads share.
  if (state->file == nullptr) return damaged(format, "its header is not one of this format");
  if (!is(format, state->info.format))
    return damaged(format, "behind its first bytes is another format");
  if (state->info.channels < 1 || state->info.samplerate < 1)
    return damaged(format, "it says that it has no channel, or no rate");
  return SoundFile(std::move(state));
}

int SoundFile::channels() const { return state_->info.channels; }
int SoundFile::rate() const { return state_->info.samplerate; }

std::optional<int64_t> SoundFile::frames() const {
  const int64_t frames = state_->info.frames;
  // The largest number is libsndfile's word for an unknown one.
  if (frames < 0 || frames == SF_COUNT_MAX) return std::nullopt;
  return frames;
}

Result<size_t> SoundFile::read(std::span<float> samples) {
  const auto room = static_cast<sf_count_t>(samples.size()) / channels();
  CHECK(room > 0);
  const sf_count_t frames = sf_readf_float(state_->file, samples.data(), room);
  if (sf_error(state_->file) != SF_ERR_NO_ERROR)
    return damaged(state_->format, sf_strerror(state_->file));
  return static_cast<size_t>(std::max<sf_count_t>(frames, 0));
}

}  // namespace weir::media
