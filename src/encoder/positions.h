// Where rows of a view lie in a table of learned positions, and the angles of its rows.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "encoder/spec.h"
#include "encoder/view.h"

namespace weir::encoder {

// Which of `side` equal parts of a length the i-th of `count` places begins in; 0 <= i < count. As
// the reference does it: i / count in float32, held against the multiples of 1 / side.
int32_t bucket_of(int32_t i, int32_t count, int32_t side);

// By what the `side` entries of a table count for the i-th of `count` places, as torch resizes it:
// a triangle, as wide as a place where the table is finer. Entries [first, first + weights.size()).
struct Mixture {
  int32_t first = 0;
  std::vector<float> weights{};
};
Mixture antialiased(int32_t i, int32_t count, int32_t side);
// The same where the first and the last place are the table's first and last entry.
Mixture corner_to_corner(int32_t i, int32_t count, int32_t side);
// The same by torch's bicubic sampling at the places' middles; beyond its edges a table goes on as
// its last entry.
Mixture bicubic(int32_t i, int32_t count, int32_t side);

// The angles of a grid's place, [head_dim]: cosines of its head_dim / 2 pairs, then sines.
void turn(const Rope& rope, int32_t head_dim, View::Place place, float* out);
// The same of a row that turns by nothing: a class row's.
void stand_still(int32_t head_dim, float* out);

}  // namespace weir::encoder
