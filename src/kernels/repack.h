// Packs weights as QuantMatrix and Float8Matrix (ops.h) have them, once, at load: from the stored
// MLX layout, or from rows of any format (row_numbers.h); the same numbers, in the order that
// kernels read them.
//
// Threads: free functions on the caller's memory; ranges of 16-row blocks may be packed in
// parallel.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/row_numbers.h"

namespace weir::kernels {

// The matrix that kernels get of a container_of() and its memory.
QuantMatrix matrix_of(const QuantShape& held);
// Bytes of a matrix's words and scales.
int64_t packed_word_bytes(const QuantMatrix& w);
int64_t packed_scale_bytes(const QuantMatrix& w);
int64_t packed_word_bytes(const Float8Matrix& w);
int64_t packed_scale_bytes(const Float8Matrix& w);

// Packs up to 16 rows in the form of `held` into one block, at whose begin `words` and `scales`
// point; what rows it lacks are zeros.
void pack_block(const QuantShape& held, const RowNumbers* rows, int32_t count, uint8_t* words,
                uint8_t* scales);

// Packs up to 16 rows of float8 numbers, [count, w.k], and of each row its scales, into one block.
// Where rows of `w` share their scales the first one's are taken. `w`: a shape; its memory is not
// looked at.
void pack_float8_block(const Float8Matrix& w, const uint8_t* rows, const float* row_scales,
                       int32_t count, uint8_t* numbers, float* scales);

// The stored form of MLX: each row one LSB-first stream of `bits`-wide numbers (k * bits / 8
// bytes), scales and biases [n, k / group] row-major.
struct StoredQuant {
  int32_t n = 0;
  int32_t k = 0;
  int32_t group = 0;
  int32_t bits = 0;  // 2, 3, 4, 5, 6 or 8.
  FloatType scale_type = FloatType::kF16;
  const uint8_t* words = nullptr;
  const uint8_t* scales = nullptr;
  const uint8_t* biases = nullptr;
};

// 4 for 2 to 4 bits, 8 for 5 to 8.
int32_t container_bits(int32_t bits);
int64_t packed_word_bytes(int32_t n, int32_t k, int32_t container);
int64_t packed_scale_bytes(int32_t n, int32_t k, int32_t group, FloatType scale_type);

// Columns [begin, end) of the matrix, rows of the stored weight, as what a product may fetch for
// the next one.
NextWeights next_weights(const QuantMatrix& w, int32_t begin, int32_t end);
NextWeights next_weights(const Float8Matrix& w, int32_t begin, int32_t end);

// Packs blocks [begin, end) of 16 rows into `words` and `scales`, which are whole matrices of the
// sizes above. REQUIRES: 64-byte alignment of both.
void repack_blocks(const StoredQuant& stored, int32_t begin, int32_t end, uint8_t* words,
                   uint8_t* scales);

// The numbers themselves, v = fma(scale, q, bias) as gemm_quant_f32 has them, transposed: [k, n].
void dequantise_turned(const StoredQuant& stored, float* out);

}  // namespace weir::kernels
