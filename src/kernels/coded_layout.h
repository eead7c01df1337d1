// Where a head's keys and values lie in a page of codes (CodedPages in coded_ops.h), in lines of 64
// bytes.
//
//   key codes     for each 8 dimensions j (4 bits) or 4 (8 bits) a line of tokens 0..15, then one
//   of
//                 tokens 16..31; byte 4 tok + r of it is code[tok][8j + r] | code[tok][8j + 4 + r]
//                 << 4, or code[tok][4j + r]. So a token is a 32-bit lane, and sums need no lane
//                 crossed.
//   key scales    32 halves
//   mean scale    one float, and what is left of a line
//   means         a signed byte for each dimension
//   value codes   for each 16 dimensions as many lines as there are bits. Four tokens are a step, 8
//                 steps a page. 4 bits: byte 4 dim + r of line v is code[8v + r][dim] | code[8v + 4
//                 + r][dim] << 4; 8 bits: of line s, code[4s + r][dim] - 128, signed; 3 bits: in
//                 bits 2i and 2i + 1 of line v the low two of code[4 (4v + i) + r][dim], and in bit
//                 s of the third line the high one of code[4s + r][dim]
//   value scales  32 halves, and what is left of a line
// Dimensions beyond the last one are there as codes of any value.
//
// Included by files with ISA flags.
#pragma once

#include <cstdint>

#include "kernels/coded_ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

inline constexpr int32_t kCodedLine = 64;
inline constexpr int32_t kHalfPage = kPageTokens / 2;  // Tokens of a line of keys.
inline constexpr int32_t kStepTokens = 4;              // Of values.
inline constexpr int32_t kPageSteps = kPageTokens / kStepTokens;
inline constexpr int32_t kChunkDims = 16;  // Dimensions of a line of values.

WEIR_INLINE constexpr int64_t whole_lines(int64_t bytes) {
  return (bytes + kCodedLine - 1) / kCodedLine * kCodedLine;
}
// Dimensions of keys that a pair of lines has, and how many pairs there are.
WEIR_INLINE constexpr int32_t key_line_dims(int32_t bits) { return 32 / bits; }
WEIR_INLINE constexpr int32_t key_lines(int32_t dim, int32_t bits) {
  return (dim + key_line_dims(bits) - 1) / key_line_dims(bits);
}
WEIR_INLINE constexpr int32_t value_chunks(int32_t dim) {
  return (dim + kChunkDims - 1) / kChunkDims;
}

// Offsets in a head's part of a page.
WEIR_INLINE constexpr int64_t key_scales_at(const CodedPages& c) {
  return int64_t{2} * kCodedLine * key_lines(c.k_dim, c.k_bits);
}
WEIR_INLINE constexpr int64_t mean_scale_at(const CodedPages& c) {
  return key_scales_at(c) + kCodedLine;
}
WEIR_INLINE constexpr int64_t means_at(const CodedPages& c) {
  return mean_scale_at(c) + kCodedLine;
}
WEIR_INLINE constexpr int64_t value_codes_at(const CodedPages& c) {
  return means_at(c) + whole_lines(c.k_dim);
}
WEIR_INLINE constexpr int64_t value_scales_at(const CodedPages& c) {
  return value_codes_at(c) + int64_t{kCodedLine} * c.v_bits * value_chunks(c.v_dim);
}
WEIR_INLINE constexpr int64_t coded_head_bytes(const CodedPages& c) {
  return value_scales_at(c) + kCodedLine;
}

WEIR_INLINE uint8_t* coded_head(const CodedPages& c, int32_t page, int32_t head) {
  return c.base + page * c.page_bytes + head * c.head_bytes;
}

}  // namespace weir::kernels
