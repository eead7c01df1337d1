// Resampler: samples at one rate to samples at another, by libsoxr at its high quality, which is
// what the reference's loader of sounds uses (librosa's "soxr_hq"). Equal rates change nothing.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace weir::media {

class Resampler {
 public:
  // kCapacity without memory.
  static Result<Resampler> create(int from, int to);

  Resampler(Resampler&&) noexcept;
  Resampler& operator=(Resampler&&) noexcept;
  ~Resampler();

  // Appends what is known of the output by now to `out`.
  void add(std::span<const float> samples, std::vector<float>& out);
  // Appends the rest. In all there are then as many samples as last as long as the input, rounded
  // up.
  void finish(std::vector<float>& out);

 private:
  struct State;
  explicit Resampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How many samples at `to` last as long as `count` at `from`, rounded up.
int64_t resampled_count(int64_t count, int from, int to);

}  // namespace weir::media
