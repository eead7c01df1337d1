// The linear layers' meaning: one output at a time, in the order that ops.h fixes.
#include <cmath>

#include "kernels/isa.h"
#include "kernels/scalar/quantise.h"
#include "kernels/scalar/widen.h"

namespace weir::kernels::scalar {
namespace {

// The activation row that row `m` of the result comes from.
int64_t source_row(const GemmRange& range, int32_t m) {
  return range.index != nullptr ? range.index[m] : m;
}

void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range, void*) {
  const int32_t groups = w.k / w.group;
  for (int32_t column = range.begin; column < range.end; ++column) {
    const QuantRow weights(w, column);
    for (int32_t m = 0; m < range.rows; ++m) {
      const int64_t row = source_row(range, m);
      const int8_t* q = x.q + row * w.k;
      float c = 0;
      for (int32_t g = 0; g < groups; ++g) {
        int32_t dot = 0;
        for (int32_t i = g * w.group; i < (g + 1) * w.group; ++i) dot += weights.permuted(i) * q[i];
        const float scaled = static_cast<float>(dot) * weights.scale(g);
        c = std::fma(scaled, x.scale[row * groups + g], c);
        c = std::fma(weights.bias(g), x.sum[row * groups + g], c);
      }
      range.y[m * range.y_stride + column] = c + 0.0f;
    }
  }
}

void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void*) {
  for (int32_t column = range.begin; column < range.end; ++column) {
    const QuantRow weights(w, column);
    for (int32_t m = 0; m < range.rows; ++m) {
      const float* row = x + source_row(range, m) * x_stride;
      float c = 0;
      for (int32_t i = 0; i < w.k; ++i) {
        const int32_t g = i / w.group;
        const float v =
            std::fma(weights.scale(g), static_cast<float>(weights.at(i)), weights.bias(g));
        c = std::fma(v, row[i], c);
      }
      range.y[m * range.y_stride + column] = c;
    }
  }
}

void gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void*) {
  for (int32_t column = range.begin; column < range.end; ++column) {
    for (int32_t m = 0; m < range.rows; ++m) {
      const float* row = x + source_row(range, m) * x_stride;
      float c = 0;
      for (int32_t i = 0; i < w.k; ++i) c = std::fma(widen_weight(w, column, i), row[i], c);
      range.y[m * range.y_stride + column] = c;
    }
  }
}

void gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, void*) {
  for (int32_t column = range.begin; column < range.end; ++column) {
    const Float8Row weights(w, column);
    for (int32_t m = 0; m < range.rows; ++m) {
      const float* row = x + source_row(range, m) * x_stride;
      float c = 0;
      for (int32_t begin = 0; begin < w.k;) {
        const int32_t end = float8_stretch(w, begin).end;
        float s[4] = {0, 0, 0, 0};
        for (int32_t i = begin; i < end; ++i)
          s[i % 4] = std::fma(weights.number(i), row[i], s[i % 4]);
        c = std::fma(((s[0] + s[1]) + s[2]) + s[3], weights.scale(begin), c);
        begin = end;
      }
      range.y[m * range.y_stride + column] = c;
    }
  }
}

void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range) {
  for (int32_t m = 0; m < range.rows; ++m) {
    float* y = range.y + m * range.y_stride;
    for (int32_t column = range.begin; column < range.end; ++column) {
      const int64_t first =
          int64_t{column / kBlockRows} * b.rank * kBlockRows + column % kBlockRows;
      float s[4] = {0, 0, 0, 0};
      for (int32_t r = 0; r < b.rank; ++r)
        s[r % 4] = std::fma(t[m * t_stride + r],
                            widen(b.type, b.blocks, first + int64_t{r} * kBlockRows), s[r % 4]);
      y[column] += (s[0] + s[1]) + (s[2] + s[3]);
    }
  }
}

}  // namespace

void fill_gemm(Ops& ops) {
  ops.quantise_rows = quantise_rows;
  ops.gemm_quant_int8 = gemm_quant_int8;
  ops.gemm_quant_f32 = gemm_quant_f32;
  ops.gemm_float_f32 = gemm_float_f32;
  ops.gemm_float8_f32 = gemm_float8_f32;
  ops.add_low_rank = add_low_rank;
  ops.dequantise_row = dequantise_row;
  ops.widen_row = widen_row;
  ops.widen_float8_row = widen_float8_row;
}

}  // namespace weir::kernels::scalar
