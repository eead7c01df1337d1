// RopeTable: cosines and sines of rotary embedding for one Rope, by position, and by length where
// the scaling rule asks for it (decision 20).
//
// Threads: immutable once built; angles() writes only what it is handed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"
#include "model/spec.h"

namespace weir::model {

struct Angles {
  const float* cos = nullptr;  // [dim / 2], the attention factor included.
  const float* sin = nullptr;
};

class RopeTable {
 public:
  // Tabulates positions [0, context_max), up to a limit; the others are computed when asked for, by
  // the same code.
  RopeTable(const Rope& rope, int32_t context_max);

  // Frequencies [dim / 2] for a sequence of `length` tokens.
  void frequencies(int32_t length, std::span<float> out) const;
  // `own` [dim] takes the angles that are not tabulated.
  Angles angles(int32_t position, int32_t length, std::span<float> own) const;

  // The angles of a row whose position is three numbers.
  Angles angles(const RopePosition& position, int32_t length, std::span<float> own) const;

  const Rope& rope() const { return rope_; }
  int32_t half() const { return rope_.dim / 2; }

 private:
  bool beyond(int32_t length) const;  // The original context.
  float factor_of(int32_t length) const;
  void compute(int32_t position, std::span<const float> frequencies, float factor,
               float* out) const;

  Rope rope_;
  std::vector<float> frequencies_;  // Of a short sequence, where they depend on the length.
  std::vector<float> long_frequencies_;
  std::vector<float> table_;  // [positions][dim]: cosines, then sines.
  int32_t positions_ = 0;
};

}  // namespace weir::model
