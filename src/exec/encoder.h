// Encoder: pictures and sounds to the rows of features that take the place of their tokens'
// embeddings. An executor whose model reads either hands it out.
//
// A life: the executor has it place its weights; then begin() of some of them and advance() until
// they are done, again and again, between the executor's steps. The engine may stop in the middle.
//
// Threads: as Executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "media/features/sound_features.h"
#include "media/processor/pixel_values.h"

namespace weir::exec {

// One picture or sound. What it points to stays in place until it is done.
struct EncodeTask {
  // One of the two, the other is null.
  const media::PixelValues* pixels = nullptr;
  const media::SoundFeatures* sound = nullptr;
  // [1 + levels()][rows][hidden_size]: what its rows begin with, then the levels that are added to
  // them (model::VectorRows).
  std::span<float> features{};
  int32_t rows = 0;
};

class Encoder {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Encoder() = default;

  // As Executor's.
  virtual Result<bool> place_weights(const std::function<void(int64_t, int64_t)>& progress,
                                     Clock::time_point until) = 0;
  virtual std::string lost_weights() const = 0;
  // REQUIRES: nothing is being computed.
  virtual void rest() = 0;

  // What it takes.
  virtual bool sees_pictures() const = 0;
  virtual bool hears_sounds() const = 0;
  // Of the rows of a picture, beside what they begin with; those of a sound are zeros.
  virtual int32_t levels() const = 0;
  // What is to be computed next: the first ones of `tasks`, as many as there is room for, at least
  // one; returns how many. What one gives depends on no other. An error says what of them cannot
  // be computed; none is then. REQUIRES: none are being computed.
  virtual Result<int32_t> begin(std::span<const EncodeTask> tasks) = 0;
  // Computes so many sublayers of them, or those that are left; true when they are done.
  virtual bool advance(int32_t sublayers) = 0;
};

}  // namespace weir::exec
