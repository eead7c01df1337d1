// Spectrum: the frequencies of a frame of real numbers, by kissfft's template in float64. The
// references compute in float32 (torch) and in float64 (NumPy); more exact than both, it lies
// within the rounding of either, and costs no time that matters (bench/sound_bench.cpp).
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <span>

namespace weir::media {

class Spectrum {
 public:
  // Whether a transform of `size` points is computed: even numbers, the half a product of 2, 3, 5.
  static bool computes(int size);

  // REQUIRES: computes(size).
  explicit Spectrum(int size);
  ~Spectrum();

  int bins() const;  // size / 2 + 1 frequencies, from 0 to half the rate.

  // |transform|^2 of `frame`, [size], into `powers`, [bins].
  void powers(std::span<const double> frame, std::span<double> powers);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::media
