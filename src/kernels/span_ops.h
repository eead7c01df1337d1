// The table of kernels for attention in bf16 within a span, whose rows see each other, all of them:
// as ops.h, which says what a table is, what its entries may touch, and what batch invariance
// means. Encoders compute with it. Keys and values are rounded once, into pages of panels that
// products read as they lie, and then meet all queries.
//
// Included by files with ISA flags: free of the standard library beyond <cstdint>.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kernels {

inline constexpr int32_t kSpanDimsMax = 256;

// A page has the keys of kPageTokens tokens of one head, then their values, in tiles of 512 numbers
// of bf16, [16 pairs][16][2], with zeros where there is no token or dimension:
//   keys    [2][dims / 32, rounded up]: of each 16 tokens, pairs of dimensions
//   values  [dims / 16, rounded up]: of each 16 dimensions, pairs of tokens
constexpr int64_t span_key_numbers(int32_t dims) {
  return int64_t{dims + 31} / 32 * 32 * kPageTokens;
}
constexpr int64_t span_page_numbers(int32_t dims) {
  return span_key_numbers(dims) + int64_t{dims + 15} / 16 * 16 * kPageTokens;
}

// Some rows of one head, and what they see.
struct SpanArgs {
  const float* q = nullptr;  // Row r at q + r * q_stride.
  int64_t q_stride = 0;
  float* out = nullptr;  // Likewise.
  int64_t out_stride = 0;
  int32_t rows = 0;
  int32_t dims = 0;                 // Of a query, as of a key and of a value.
  const uint16_t* pages = nullptr;  // Token j is in page j / kPageTokens of these.
  int32_t begin = 0, end = 0;       // Tokens that all of the rows see.
  float scale = 1;
  void* scratch = nullptr;  // kScratchBytes, 64-byte aligned.
};

struct SpanOps {
  // Attention so is faster than over pages of floats.
  bool fast = false;
  // Rounds keys and values of `tokens` tokens, `stride` numbers apart, into a page: to nearest,
  // ties to even, denormals to 0. The same bits in every table. REQUIRES: 1 <= tokens <=
  // kPageTokens; 1 <= dims <= kSpanDimsMax; `page` is 64-byte aligned.
  void (*fill_page)(const float* k, const float* v, int64_t stride, int32_t tokens, int32_t dims,
                    uint16_t* page);
  // out = sum_j w_j v_j / sum_j w_j,  w_j = exp(scale (q . k_j) - m), m the largest of a row's:
  // with q rounded to bf16 as keys and values are, and w_j where it meets v_j; sums are float32.
  // Which m is taken off meanwhile, and the order of the sums, depend on begin and end alone.
  // Tokens of a page outside begin and end have the weight 0, but their values are multiplied by it:
  // one that is Inf or NaN makes NaN of rows that do not see it, where they see others of its page.
  // REQUIRES: 0 <= begin < end; dims as above; scale > 0.
  void (*attend)(const SpanArgs& args);
};

// REQUIRES: isa_available(isa).
const SpanOps& span_ops_for(Isa isa);

namespace scalar {
void fill_spans(SpanOps& ops);
}
namespace avx512bf16 {
void fill_spans(SpanOps& ops);
}
namespace amx {
void fill_spans(SpanOps& ops);
// The same on emulated tiles, for tests on machines without AMX.
void fill_spans_emulated(SpanOps& ops);
}  // namespace amx

}  // namespace weir::kernels
