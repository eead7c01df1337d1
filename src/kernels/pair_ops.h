// The table of kernels for products of many rows in bf16 without tiles: as ops.h, which says what a
// table is, what its entries may touch, and what batch invariance means. Vision towers compute with
// it, whose rows are always many. Its bits are the same on every ISA, denormals aside.
//
// Included by files with ISA flags: free of the standard library beyond <cstdint>.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kernels {

// Rows of k numbers in bf16, in their own order, and zeros up to a multiple of kPairStep. REQUIRES:
// `stride`, from a row to the next, is such a multiple that is not below k; rows are 64-byte
// aligned.
inline constexpr int32_t kPairStep = 32;
struct PairRows {
  int32_t k = 0;
  int64_t stride = 0;
  uint16_t* x = nullptr;
};

constexpr int32_t pair_stride(int32_t k) { return (k + kPairStep - 1) / kPairStep * kPairStep; }

struct PairOps {
  // Such products are faster than those of float32.
  bool fast = false;
  // Rounds `rows` rows of out.k floats, x_stride apart, into out's rows 0..., to nearest, ties to
  // even, denormals to 0.
  void (*round)(const float* x, int64_t x_stride, int32_t rows, PairRows out);
  // y[m][c] = sum_k x[m][k] * w[c][k]: from 0, for each pair of elements ascending
  //   c = fma(w[2i + 1], x[2i + 1], c);  c = fma(w[2i], x[2i], c)
  // with weights of f16 rounded to bf16 first. REQUIRES: w.type is kBF16 or kF16; x.k == w.k.
  // `scratch`: kScratchBytes, 64-byte aligned.
  void (*gemm)(const FloatMatrix& w, const PairRows& x, const GemmRange& range, void* scratch);
};

// REQUIRES: isa_available(isa).
const PairOps& pair_ops_for(Isa isa);

namespace scalar {
void fill_pairs(PairOps& ops);
}
namespace avx512bf16 {
void fill_pairs(PairOps& ops);
}

}  // namespace weir::kernels
