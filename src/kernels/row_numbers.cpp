#include "kernels/row_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype.h"
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
  if (shape.scales != ScaleForm::kTwoLevel) {
    const float scale = number_at(shape.scale_type, row.scales, g);
    if (shape.scales == ScaleForm::kPairs)
      return {scale, number_at(shape.scale_type, row.biases, g)};
    const int32_t zero = shape.scales == ScaleForm::kZeros ? row.zeros[g] : shape.offset;
    return {scale, -scale * static_cast<float>(zero)};
  }
  const int32_t super = g * shape.group / kSuperGroup;
  const float scale = row.d[super] * byte_scale(shape.byte_scale, row.group_scales[g]);
  const float bias = shape.mins ? -(row.dmin[super] * static_cast<float>(row.group_mins[g]))
                                : -scale * static_cast<float>(shape.offset);
  return {scale, bias};
}

// Whether none of so many halves is an infinity or a NaN: a loop that compilers make vectors of.
bool finite_halves(const uint8_t* halves, int32_t count) {
  constexpr uint16_t kExponent = 0x7c00;
  bool finite = true;
  for (int32_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, halves + 2 * i, sizeof half);
    finite = finite & ((half & kExponent) != kExponent);
  }
  return finite;
}

}  // namespace

float number_at(FloatType type, const uint8_t* numbers, int64_t i) {
  if (type == FloatType::kF32) {
    float value;
    std::memcpy(&value, numbers + 4 * i, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, numbers + 2 * i, sizeof bits);
  return type == FloatType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

void put_number(FloatType type, float value, uint8_t* numbers, int64_t i) {
  if (type == FloatType::kF32) {
    std::memcpy(numbers + 4 * i, &value, sizeof value);
    return;
  }
  const uint16_t bits = type == FloatType::kF16 ? float_to_half(value) : float_to_bf16(value);
  std::memcpy(numbers + 2 * i, &bits, sizeof bits);
}

float e8m0_to_float(uint8_t byte) {
  if (byte == 0xff) return std::numeric_limits<float>::quiet_NaN();
  // The byte is a float's exponent; 2^-127, which no exponent says, has a bit below it.
  return std::bit_cast<float>(byte == 0 ? 0x00400000u : uint32_t{byte} << 23);
}

float e4m3_to_float(uint8_t byte) {
  constexpr int kBias = 7, kMantissaBits = 3;
  const int exponent = byte >> kMantissaBits & 15, mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  // Numbers below the least exponent are multiples of 2^-9; others have their bits in a float's.
  constexpr int kFloatBias = 127, kFloatMantissaBits = 23;
  const float size =
      exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                    : std::bit_cast<float>((exponent - kBias + kFloatBias) << kFloatMantissaBits |
                                           mantissa << (kFloatMantissaBits - kMantissaBits));
  return byte & 0x80 ? -size : size;
}

RowBuffer::RowBuffer(const QuantShape& shape, int32_t rows) {
  const auto k = static_cast<size_t>(shape.k);
  const size_t groups = k / static_cast<size_t>(shape.group);
  const size_t supers = (k + kSuperGroup - 1) / kSuperGroup;
  const size_t scales = groups * static_cast<size_t>(float_type_bytes(shape.scale_type));
  const size_t bytes = k + 2 * scales + 3 * groups, floats = 2 * supers;
  bytes_.resize(bytes * static_cast<size_t>(rows));
  floats_.resize(floats * static_cast<size_t>(rows));
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    uint8_t* b = bytes_.data() + r * bytes;
    float* f = floats_.data() + r * floats;
    uint8_t* of_groups = b + k + 2 * scales;
    rows_.push_back({.codes = b,
                     .scales = b + k,
                     .biases = b + k + scales,
                     .zeros = of_groups,
                     .group_scales = of_groups + groups,
                     .group_mins = of_groups + 2 * groups,
                     .d = f,
                     .dmin = f + supers});
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
  const int32_t groups = shape.k / shape.group;
  // A half times what stands for 0, a byte, is finite.
  if (shape.scales != ScaleForm::kTwoLevel && shape.scale_type == FloatType::kF16)
    return finite_halves(row.scales, groups) &&
           (shape.scales != ScaleForm::kPairs || finite_halves(row.biases, groups));
  for (int32_t g = 0; g < groups; ++g) {
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
