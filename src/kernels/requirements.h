// What ops.h REQUIRES of the arguments of each entry, as functions of the entry's name that take
// the same arguments: null if they are as required, else the requirement that is broken.
//
// Buffers are not looked into beyond indices and page numbers: that they are as long as the shapes
// say is for the sanitizers to find.
//
// Threads: any; pure functions.
#pragma once

#include <cstdint>

#include "kernels/coded_ops.h"
#include "kernels/ops.h"

namespace weir::kernels::requirements {

using Broken = const char*;

// --- Of the structures that several entries take.

Broken quant_matrix(const QuantMatrix& w);
Broken float_matrix(const FloatMatrix& w);
Broken float8_matrix(const Float8Matrix& w);
Broken quant_rows(const QuantRows& x);
Broken bf16_rows(const Bf16Rows& x);
// `n`: the columns that the matrix has.
Broken gemm_range(const GemmRange& range, int32_t n);
Broken scratch(const void* memory);
Broken kv_pages(const KvPages& kv);
Broken coded_pages(const CodedPages& coded);

// --- Of the entries.

Broken quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns,
                     QuantRows out);
Broken gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                       void* memory);
Broken round_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, Bf16Rows out);
Broken gemm_quant_bf16(const QuantMatrix& w, const Bf16Rows& x, const GemmRange& range,
                       void* memory);
Broken gemm_float_bf16(const FloatMatrix& w, const Bf16Rows& x, const GemmRange& range,
                       void* memory);
Broken gemm_float8_bf16(const Float8Matrix& w, const Bf16Rows& x, const GemmRange& range,
                        void* memory);
Broken gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride,
                      const GemmRange& range, void* memory);
Broken gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride,
                      const GemmRange& range, void* memory);
Broken gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                       const GemmRange& range, void* memory);
Broken add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range);
Broken dequantise_row(const QuantMatrix& w, int32_t row, float* out);
Broken widen_row(const FloatMatrix& w, int32_t row, float* out);
Broken widen_float8_row(const Float8Matrix& w, int32_t row, float* out);

Broken rms_norm(const float* x, const float* w, float eps, int32_t n, float* y);
Broken layer_norm(const float* x, const float* w, const float* b, float eps, int32_t n, float* y);
Broken add_scaled(const float* x, float s, int32_t n, float* y);
Broken scale(float s, int32_t n, float* y);
Broken product(const float* x, int32_t n, float* y);
Broken softcap(float cap, int32_t n, float* y);
Broken gated_act(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y);
Broken act(Act act, int32_t n, float* y);
Broken xielu(const Xielu& act, int32_t n, float* y);
Broken rope(float* x, int32_t heads, int32_t head_dim, int32_t dims, const float* cos,
            const float* sin, bool interleaved);

Broken store_keys(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                  const float* k);
Broken store_values(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                    const float* v);
Broken attend(const KvPages& kv, const AttendArgs& args);
Broken index_scores(const IndexScores& index);
Broken rotate(const Rotation& rotation, bool back, int32_t heads, float* x);
Broken encode_page(const CodedPages& to, int32_t page, const KvPages& hot, int32_t hot_page,
                   int32_t head, void* memory);
Broken attend_coded(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                    const AttendArgs& args);

Broken conv_step(const ConvStep& conv, int32_t n, float* x);
Broken delta_run(const DeltaRun& run);
Broken delta_decays(const float* rate, const float* bias, int32_t n, float* x);
Broken decay_run(const DecayRun& run);
Broken selective_scan(const SelectiveScan& scan);

Broken argmax(const float* x, int32_t n);
Broken log_sum_exp(const float* x, int32_t n);
Broken softmax(const float* x, int32_t n, float* y);

}  // namespace weir::kernels::requirements
