#include "kernels/row_numbers.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace weir::kernels {

namespace {

// The numbers of a grid of 16, and how far they lie above zero as bytes.
struct Table {
  std::array<int8_t, 16> value;
  int32_t shift;
};
constexpr Table kIq4Table = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 128};
constexpr Table kE2m1Table = {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, 12};

const Table& table_of(Grid grid) { return grid == Grid::kIq4 ? kIq4Table : kE2m1Table; }

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
  if (stored.group < 32) return std::nullopt;
  QuantShape held = {.n = stored.n, .k = stored.k, .group = stored.group};
  held.bits = stored.bits <= 4 && stored.grid == Grid::kUniform ? 4 : 8;
  return held;
}

void lower_row(const QuantShape& stored, const QuantShape& held, const RowNumbers& row) {
  CHECK(held.scales == ScaleForm::kPairs && held.grid == Grid::kUniform);
  const int32_t groups = stored.k / stored.group;
  const bool uniform = stored.grid == Grid::kUniform;
  const int32_t shift = uniform ? 0 : table_of(stored.grid).shift;
  for (int32_t g = 0; g < groups; ++g) {
    const Pair pair = pair_of(stored, row, g);
    row.scales[g] = pair.scale;
    row.biases[g] = pair.bias - pair.scale * static_cast<float>(shift);
  }
  if (uniform) return;
  const Table& table = table_of(stored.grid);
  for (int32_t i = 0; i < stored.k; ++i)
    row.codes[i] = static_cast<uint8_t>(table.value[row.codes[i] & 15] + shift);
}

void dequantise_row(const QuantShape& stored, const RowNumbers& row, float* out) {
  const bool uniform = stored.grid == Grid::kUniform;
  for (int32_t g = 0; g < stored.k / stored.group; ++g) {
    const Pair pair = pair_of(stored, row, g);
    for (int32_t i = g * stored.group; i < (g + 1) * stored.group; ++i) {
      const int32_t value = uniform ? row.codes[i] : table_of(stored.grid).value[row.codes[i] & 15];
      out[i] = std::fma(pair.scale, static_cast<float>(value), pair.bias);
    }
  }
}

}  // namespace weir::kernels
