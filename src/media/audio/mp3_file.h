// Mp3File: the samples of an MP3 in memory, by mpg123. Not by libsndfile, which calls mpg123 too,
// because that lets it write a line to standard error for each frame that is damaged, and keeps the
// silence that encoders put before a sound.
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

namespace weir::media {

class Mp3File {
 public:
  // `bytes` outlive the file. kInvalid if there is no frame of layer 3 in them.
  static Result<Mp3File> open(std::string_view bytes);

  Mp3File(Mp3File&&) noexcept;
  Mp3File& operator=(Mp3File&&) noexcept;
  ~Mp3File();

  int channels() const;
  int rate() const;
  // How many frames there are is not known: what a header says of it may be a guess.
  std::optional<int64_t> frames() const { return std::nullopt; }

  // As SoundFile's.
  Result<size_t> read(std::span<float> samples);

 private:
  struct State;
  explicit Mp3File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::media
