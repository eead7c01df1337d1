// What the codes of compressed keys and values stand for: Lloyd-Max quantisers of a normal
// distribution (Max 1960), rounded to halves of odd numbers so that products of integers serve.
//
// Magnitudes in units of 1 / kUnit. The exact centroids of 4 bits are .128395 .388048 .656759
// .942340 1.256231 1.618046 2.069017 2.732590; as halves over 41.86 their error is .009505 of the
// variance in place of .009501, and that of 3 bits the same to four digits. Thresholds lie midway
// between the exact centroids. 8 bits are uniform: what they stand for is their number, less 127.5.
//
// Included by files with ISA flags.
#pragma once

#include <cstdint>

#include "kernels/unroll.h"

namespace weir::kernels {

inline constexpr int kCodeLevels4 = 8;  // Magnitudes of 4 bits.
inline constexpr int kCodeLevels3 = 4;
inline constexpr float kMagnitudes4[kCodeLevels4] = {5.5f,  16.5f, 27.5f, 39.5f,
                                                     52.5f, 67.5f, 86.5f, 114.5f};
inline constexpr float kThresholds4[kCodeLevels4 - 1] = {.258222f,  .522404f,  .799550f, 1.099286f,
                                                         1.437139f, 1.843532f, 2.400803f};
inline constexpr float kMagnitudes3[kCodeLevels3] = {12.5f, 38.5f, 68.5f, 109.5f};
inline constexpr float kThresholds3[kCodeLevels3 - 1] = {.500550f, 1.049957f, 1.747927f};
inline constexpr float kUnit4 = 41.86f;
inline constexpr float kUnit3 = 50.90f;
// Of 8 bits, whose scale follows the vector's largest number: about what scales of 4 bits are.
inline constexpr float kUnit8 = 32.0f;
inline constexpr float kCodeMax8 = 127.5f;

// Vectors that are quantised as if they were so much longer or shorter: the best of these takes 14
// % (4 bits) or 5 % (3 bits) off the error of a vector of 128 numbers, at no cost to its reader.
inline constexpr int kSearchSteps = 9;
inline constexpr float kSearch[kSearchSteps] = {.80f,  .85f,  .90f,  .95f, 1.0f,
                                                1.05f, 1.10f, 1.15f, 1.20f};

WEIR_INLINE constexpr float code_unit(int32_t bits) {
  return bits == 4 ? kUnit4 : bits == 3 ? kUnit3 : kUnit8;
}

// What code `code` of 3 or 4 bits stands for, times 2: an odd number.
WEIR_INLINE constexpr int32_t twice_value(int32_t bits, int32_t code) {
  const int32_t levels = bits == 4 ? kCodeLevels4 : kCodeLevels3;
  const float* const magnitudes = bits == 4 ? kMagnitudes4 : kMagnitudes3;
  return code < levels ? -static_cast<int32_t>(2 * magnitudes[levels - 1 - code])
                       : static_cast<int32_t>(2 * magnitudes[code - levels]);
}

}  // namespace weir::kernels
