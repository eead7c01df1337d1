// What attention within a span means: one row at a time.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/scalar/widen.h"
#include "kernels/span_ops.h"

namespace weir::kernels::scalar {
namespace {

constexpr int32_t kTile = 512;

uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

float rounded(float value) { return bf16_to_float(round_to_bf16(value)); }

// Where in its page dimension d of token t's key lies, and of its value.
int64_t key_at(int32_t dims, int32_t t, int32_t d) {
  const int32_t steps = (dims + 31) / 32;
  return int64_t{t / 16 * steps + d / 32} * kTile + d % 32 / 2 * 32 + t % 16 * 2 + d % 2;
}
int64_t value_at(int32_t dims, int32_t t, int32_t d) {
  return span_key_numbers(dims) + int64_t{d} / 16 * kTile + t / 2 * 32 + d % 16 * 2 + t % 2;
}

void fill_page(const float* k, const float* v, int64_t stride, int32_t tokens, int32_t dims,
               uint16_t* page) {
  std::fill_n(page, span_page_numbers(dims), uint16_t{0});
  for (int32_t t = 0; t < tokens; ++t)
    for (int32_t d = 0; d < dims; ++d) {
      page[key_at(dims, t, d)] = round_to_bf16(k[t * stride + d]);
      page[value_at(dims, t, d)] = round_to_bf16(v[t * stride + d]);
    }
}

void attend(const SpanArgs& args) {
  for (int32_t r = 0; r < args.rows; ++r) {
    const float* q = args.q + r * args.q_stride;
    float* out = args.out + r * args.out_stride;
    const auto page_of = [&](int32_t j) {
      return args.pages + j / kPageTokens * span_page_numbers(args.dims);
    };
    const auto score = [&](int32_t j) {
      float sum = 0;
      for (int32_t d = 0; d < args.dims; ++d)
        sum = std::fma(rounded(q[d]),
                       bf16_to_float(page_of(j)[key_at(args.dims, j % kPageTokens, d)]), sum);
      return args.scale * sum;
    };
    float most = -INFINITY, sum = 0;
    for (int32_t j = args.begin; j < args.end; ++j) most = std::max(most, score(j));
    std::fill_n(out, args.dims, 0.0f);
    for (int32_t j = args.begin; j < args.end; ++j) {
      const float weight = std::exp(score(j) - most);
      sum += weight;
      for (int32_t d = 0; d < args.dims; ++d)
        out[d] = std::fma(rounded(weight),
                          bf16_to_float(page_of(j)[value_at(args.dims, j % kPageTokens, d)]),
                          out[d]);
    }
    for (int32_t d = 0; d < args.dims; ++d) out[d] /= sum;
  }
}

}  // namespace

void fill_spans(SpanOps& ops) {
  ops.fast = false;
  ops.fill_page = fill_page;
  ops.attend = attend;
}

}  // namespace weir::kernels::scalar
