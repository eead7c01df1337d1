// gemm_quant_bf16's meaning: one output at a time, in the order that ops.h fixes.
#include <bit>
#include <cmath>

#include "kernels/isa.h"
#include "kernels/scalar/widen.h"

namespace weir::kernels::scalar {
namespace {

constexpr uint32_t kUpperHalf = 0xffff0000;
constexpr float kLowBits = 0x4300 / 65536.0f;  // What lies below the second of a 4-bit pair.

float upper_half(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & kUpperHalf);
}

// The weight of element `i` as ops.h defines it.
float cut_weight(const QuantRow& row, const QuantMatrix& w, int32_t i) {
  const int32_t g = i / w.group;
  const float scale = row.scale(g) * kUnbias, bias = row.bias(g) * kUnbias;
  const bool nibbles = w.bits == 4 && plain_numbers(w);
  float magic = nibbles ? 128.0f : 256.0f;
  const bool second = i % 8 >= 4 && nibbles;
  if (second) magic += kLowBits;
  float number = magic + static_cast<float>(row.at(i));
  if (second) number += static_cast<float>(row.at(i - 4)) / 65536.0f;
  return upper_half(std::fma(number, scale, std::fma(-magic, scale, bias)));
}

// Where element `i` lies in a row of Bf16Rows.
int32_t place(int32_t i) { return i / 8 * 8 + i % 4 * 2 + i % 8 / 4; }

uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

void round_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, Bf16Rows out) {
  for (int32_t m = 0; m < rows; ++m)
    for (int32_t i = 0; i < (columns + kBf16Step - 1) / kBf16Step * kBf16Step; ++i)
      out.x[m * out.stride + place(i)] =
          i < columns ? round_to_bf16(x[m * x_stride + i]) : uint16_t{0};
}

// `weight(column, i)`: one weight as a float; of i < k.
template <class Weight>
void gemm_bf16(int32_t k, const Bf16Rows& x, const GemmRange& range, Weight&& weight) {
  constexpr int32_t kBlock = kBf16Step;
  for (int32_t column = range.begin; column < range.end; ++column) {
    float* y = range.y + column;
    for (int32_t m = 0; m < range.rows; ++m) y[m * range.y_stride] = 0;
    for (int32_t first = 0; first < k; first += kBlock) {
      float block[kBlock];
      for (int32_t i = 0; i < kBlock; ++i)
        block[i] = first + i < k ? weight(column, first + i) : 0.0f;
      for (int32_t m = 0; m < range.rows; ++m) {
        const uint16_t* row = x.x + (range.index != nullptr ? range.index[m] : m) * x.stride;
        float sums[2] = {0, 0};
        for (int32_t i = 0; i < kBlock; ++i) {
          float& sum = sums[i % 8 / 4];
          sum = std::fma(block[i], bf16_to_float(row[place(first + i)]), sum);
        }
        y[m * range.y_stride] += sums[0] + sums[1];
      }
    }
  }
}

void gemm_quant_bf16(const QuantMatrix& w, const Bf16Rows& x, const GemmRange& range, void*) {
  gemm_bf16(w.k, x, range,
            [&](int32_t column, int32_t i) { return cut_weight(QuantRow(w, column), w, i); });
}

void gemm_float_bf16(const FloatMatrix& w, const Bf16Rows& x, const GemmRange& range, void*) {
  gemm_bf16(w.k, x, range, [&](int32_t column, int32_t i) {
    return bf16_to_float(round_to_bf16(widen_weight(w, column, i)));
  });
}

void gemm_float8_bf16(const Float8Matrix& w, const Bf16Rows& x, const GemmRange& range, void*) {
  gemm_bf16(w.k, x, range, [&](int32_t column, int32_t i) {
    const Float8Row row(w, column);
    return bf16_to_float(round_to_bf16(row.number(i) * row.scale(i)));
  });
}

}  // namespace

void fill_gemm_bf16(Ops& ops) {
  ops.round_rows = round_rows;
  ops.gemm_quant_bf16 = gemm_quant_bf16;
  ops.gemm_float_bf16 = gemm_float_bf16;
  ops.gemm_float8_bf16 = gemm_float8_bf16;
}

}  // namespace weir::kernels::scalar
