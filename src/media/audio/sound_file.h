// SoundFile: the samples of a WAV, FLAC or Ogg file in memory, by libsndfile; which decodes FLAC by
// libFLAC, Vorbis and Opus by Xiph's libraries.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "media/audio/decode_sound.h"

namespace weir::media {

class SoundFile {
 public:
  // `bytes` outlive the file. kInvalid if they are no file of this format.
  static Result<SoundFile> open(SoundFormat format, std::string_view bytes);

  SoundFile(SoundFile&&) noexcept;
  SoundFile& operator=(SoundFile&&) noexcept;
  ~SoundFile();

  int channels() const;
  int rate() const;
  // How many frames, samples of each channel, the file says it has. None if it says nothing.
  std::optional<int64_t> frames() const;

  // Fills `samples`, whole frames, with channels side by side, and gives how many frames there
  // were: less than there is room for only at the end.
  Result<size_t> read(std::span<float> samples);

 private:
  struct State;
  explicit SoundFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::media
