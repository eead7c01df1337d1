#include "kernels/row_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/quant_layout.h"

namespace weir::kernels {

namespace {

int32_t value_of(Grid grid, uint8_t code) {
  switch (grid) {
    case Grid::kIq4:
      return kIq4Values[code & 15];
    case Grid::kE2m1:
      return kE2m1Values[code & 15];
    case Grid::kUniform:
      break;
  }
  return code;
}

float byte_scale(ByteScale kind, uint8_t byte) {
  switch (kind) {
    case ByteScale::kUnsigned:
      return byte;
    case ByteScale::kSigned:
      return std::bit_cast<int8_t>(byte);
    case ByteScale::kE8m0:
      return e8m0_to_float(byte);
    case ByteScale::kE4m3:
      return e4m3_to_float(byte);
  }
  return 0;
}

// A group's scale and bias as floats; their products have few enough bits to be exact.
struct Pair {
  float scale = 0;
  float bias = 0;
};

Pair pair_of(const QuantShape& shape, const RowNumbers& row, int32_t g) {
  switch (shape.scales) {
    case ScaleForm::kPairs:
      return {row.scales[g], row.biases[g]};
    case ScaleForm::kScales:
      return {row.scales[g], -row.scales[g] * static_cast<float>(shape.offset)};
    case ScaleForm::kZeros:
      return {row.scales[g], -row.scales[g] * static_cast<float>(row.zeros[g])};
    case ScaleForm::kTwoLevel:
      break;
  }
  const int32_t super = g * shape.group / kSuperGroup;
  const float scale = row.d[super] * byte_scale(shape.byte_scale, row.group_scales[g]);
  const float bias = shape.mins ? -(row.dmin[super] * static_cast<float>(row.group_mins[g]))
                                : -scale * static_cast<float>(shape.offset);
  return {scale, bias};
}

}  // namespace

float e8m0_to_float(uint8_t byte) {
  if (byte == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0f, byte - 127);
}

float e4m3_to_float(uint8_t byte) {
  constexpr int kBias = 7, kMantissaBits = 3;
  const int exponent = byte >> kMantissaBits & 15, mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -kBias - 2)
                                   : std::ldexp(static_cast<float>(8 + mantissa),
                                                exponent - kBias - kMantissaBits);
  return byte & 0x80 ? -size : size;
}

RowBuffer::RowBuffer(const QuantShape& shape, int32_t rows) {
  const auto k = static_cast<size_t>(shape.k);
  const size_t groups = k / static_cast<size_t>(shape.group);
  const size_t supers = (k + kSuperGroup - 1) / kSuperGroup;
  const size_t bytes = k + 3 * groups, floats = 2 * groups + 2 * supers;
  bytes_.resize(bytes * static_cast<size_t>(rows));
  floats_.resize(floats * static_cast<size_t>(rows));
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    uint8_t* b = bytes_.data() + r * bytes;
    float* f = floats_.data() + r * floats;
    rows_.push_back({.codes = b,
                     .scales = f,
                     .biases = f + groups,
                     .zeros = b + k,
                     .group_scales = b + k + groups,
                     .group_mins = b + k + 2 * groups,
                     .d = f + 2 * groups,
                     .dmin = f + 2 * groups + supers});
  }
}

std::optional<QuantShape> container_of(const QuantShape& stored) {
  // Words hold steps of 32 numbers.
  if (stored.group < 16 || stored.group > 128 || stored.k % kPackStep != 0) return std::nullopt;
  QuantShape held = stored;
  held.bits = stored.bits > 6 ? 8 : std::max(stored.bits, 2);
  return held;
}

bool all_finite(const QuantShape& shape, const RowNumbers& row) {
  for (int32_t g = 0; g < shape.k / shape.group; ++g) {
    const Pair pair = pair_of(shape, row, g);
    if (!std::isfinite(pair.scale) || !std::isfinite(pair.bias)) return false;
  }
  return true;
}

void dequantise_row(const QuantShape& stored, const RowNumbers& row, float* out) {
  for (int32_t g = 0; g < stored.k / stored.group; ++g) {
    const Pair pair = pair_of(stored, row, g);
    for (int32_t i = g * stored.group; i < (g + 1) * stored.group; ++i) {
      const auto value = static_cast<float>(value_of(stored.grid, row.codes[i]));
      out[i] = std::fma(pair.scale, value, pair.bias);
    }
  }
}

}  // namespace weir::kernels
