// The table of kernels for keys and values that become codes: as ops.h, which says what a table is,
// what its entries may touch, and what batch invariance means. Its bits are the same on every ISA,
// but for those of exponentials, and of attend_prompt.
//
// Included by files with ISA flags: free of the standard library beyond <cstdint>.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kernels {

// An orthogonal turn of a head's numbers after which each of them is close to normally distributed,
// whatever it was before: signs, then a Hadamard matrix of order m times one of order 2^k
// (Sylvester), divided by the root of the dimension. Where no such order is the dimension, the
// largest power of two below turns the first numbers, then the last ones, then the first ones again
// (rotation.h).
struct Rotation {
  int32_t dim = 0;
  int32_t order = 1;              // m; 1: none.
  int32_t width = 0;              // 2^k. REQUIRES: order * width == dim, or order == 1.
  const float* signs = nullptr;   // [dim], each 1 or -1.
  const float* matrix = nullptr;  // [order][order], 1 and -1; null where order is 1.
};

// Complete pages of keys and values as codes (coded_layout.h says where they lie, codebook.h what a
// code stands for), of heads that are turned. Of a page of one head:
//   (R key[t])[i]   = k_scale[t] * value(code) + mean[i],  mean[i] = mean_scale * m[i], m a byte
//   (R value[t])[i] = v_scale[t] * value(code)
// with the scales stored as halves. REQUIRES: keys and values have 8 bits, or keys 4 and values 4
// or 3; heads are coded_head_bytes() apart, and begin at lines of the cache; dimensions are
// multiples of 4 and at most kCodedDimMax, and those of the rotations.
struct CodedPages {
  uint8_t* base = nullptr;
  int64_t page_bytes = 0;
  int64_t head_bytes = 0;
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t k_bits = 4;
  int32_t v_bits = 4;
  Rotation k_rotation;
  Rotation v_rotation;
};
inline constexpr int32_t kCodedDimMax = 1024;
// From this position on a row sees codes: of blocks before its own that are not the first.
inline constexpr int32_t kFirstToSeeCodes = 2 * kPageTokens;

struct CodedOps {
  // Turns `heads` heads that lie side by side, or turns them back: y = R x, x = R^T y. Sums ascend
  // as Rotation says, each sum and difference rounded.
  void (*rotate)(const Rotation& rotation, bool back, int32_t heads, float* x);
  // Makes codes of a complete page of one head, of `hot`: key and value are its numbers, turned.
  // Per page, mean[i] = sum over t of key[t][i] / 32, over 16 lanes (t % 16), then a fixed tree,
  // rounded to bytes by the largest; r = key - mean as it is read again. Per vector r, sums
  // ascending in i, one fma after the other:
  //   u = r * (sqrt(dim) / |r|);  codes by the thresholds of u / q, for the q of kSearchSteps with
  //   the largest <u, c>^2 / <c, c>, the first of equals
  //   key: scale = |r| sqrt(dim) / <u, c> (unbiased); value: |r| / sqrt(dim) * <u, c> / <c, c>
  // With 8 bits codes are r / max |r| in 255 steps, and r takes the place of u. A key that is not
  // finite, or whose value is not, has a scale that is NaN. `scratch`: kScratchBytes.
  void (*encode_page)(const CodedPages& to, int32_t page, const KvPages& hot, int32_t hot_page,
                      int32_t head, void* scratch);
  // Attention as Ops::attend. Position p reads its own page, what comes after it, and page 0 in
  // `hot`, whose pages hot_pages names by block, all others as codes; so rows before
  // kFirstToSeeCodes have the bits of Ops::attend. Per page of codes and query, q being turned:
  //   q[i] ~ step * b[i], b = rint(q[i] * (127 / max |q|)); with keys of 8 bits two bytes, b = 128
  //   high + low
  //   score = fma(float(D) * k_scale, step / (2 unit), <q, m> * mean_scale), D the exact integer
  //   2 <b, value(code)>; <q, m> over 16 lanes (i % 16) ascending, then a fixed tree
  //   w[t] = exp(score - max) * v_scale[t] ~ f n[t], n = rint(w * (255 / max of w)), f = max / 255;
  //   sum[i] = fma(float(sum of n[t] s[t][i]), f / unit, sum[i]), s = value(code) - 1/2; and the
  //   sum of n times f / (2 unit) is added to all of them at the end
  // These sums are turned back at the end, and added to those of what is in `hot`. Tokens ascend;
  // blocks, maxima and sums of exponentials are those of Ops::attend. REQUIRES: `hot` is kF16;
  // dimensions and heads of both agree; not args.keys; all pages that a row reads in `hot` are
  // there.
  void (*attend)(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                 const AttendArgs& args);
  // Attention for rows of a prompt, from Ops::attend_prompt_from on. Rows before kFirstToSeeCodes
  // have the bits of Ops::attend_prompt. Where that is not Ops::attend, others are computed as it
  // says, over numbers that are turned: a key is fma(k_scale, value(code), mean), a value v_scale *
  // value(code), each rounded to bf16 then; what a row reads in `hot` is turned before; its sum of
  // values is turned back at the end. Else, and for heads that it has no tiles for, it is `attend`.
  // REQUIRES as `attend`.
  void (*attend_prompt)(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                        const AttendArgs& args);
};

// The table of an ISA. REQUIRES: it is available (cpu_ops.h).
const CodedOps& coded_ops_for(Isa isa);

// What each ISA folder fills; one fills only what it does better than the level below. Its `attend`
// and `attend_prompt` are called for rows from kFirstToSeeCodes on.
namespace scalar {
void fill_coded(CodedOps& ops);
}
namespace avx2 {
void fill_coded(CodedOps& ops);
void fill_coded_attention(CodedOps& ops);
}  // namespace avx2
namespace avx512 {
void fill_coded(CodedOps& ops);
void fill_coded_attention(CodedOps& ops);
}  // namespace avx512
namespace avx512bf16 {
void fill_coded_attention(CodedOps& ops);
}
namespace amx {
void fill_coded_attention(CodedOps& ops);
void fill_coded_attention_emulated(CodedOps& ops);  // As isa.h says.
}  // namespace amx

}  // namespace weir::kernels
