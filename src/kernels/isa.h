// What each ISA folder offers to cpu_ops.cpp and machine_limits.cpp: functions that fill their part
// of the table. A folder fills only what it does better than the level below.
//
// Included by files with ISA flags, so it obeys the rule of ops.h: no standard library beyond
// <cstdint>, no inline functions.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kernels {

// Loops that do nothing but keep one resource busy, for machine_limits.cpp.
struct PeakLoops {
  // `iterations` rounds of int8 multiply-adds on registers; returns the operations done, a
  // multiply-add counting as two.
  int64_t (*int8)(int64_t iterations);
  int64_t (*f32)(int64_t iterations);
  // bf16 tiles; null where prompts are not computed in bf16.
  int64_t (*bf16)(int64_t iterations);
  // Reads `bytes`, a multiple of 1024, at a 64-byte aligned address, as fast as this level can;
  // returns a value that depends on all of them. The scalar one is a plain loop.
  uint64_t (*read)(const void* data, int64_t bytes);
};

namespace scalar {
void fill_gemm(Ops& ops);
void fill_gemm_bf16(Ops& ops);
void fill_rows(Ops& ops);
void fill_attention(Ops& ops);
void fill_logits(Ops& ops);
void fill_states(Ops& ops);
void fill_peaks(PeakLoops& loops);
}  // namespace scalar

namespace avx2 {
void fill_gemm(Ops& ops);
// What is faster on processors that fetch in order; the bits are the same.
void fill_gemm_in_order(Ops& ops);
void fill_rows(Ops& ops);
void fill_attention(Ops& ops);
void fill_logits(Ops& ops);
void fill_states(Ops& ops);
void fill_peaks(PeakLoops& loops);
}  // namespace avx2

namespace avx512 {
void fill_gemm(Ops& ops);
// What is faster on processors that fetch in order; the bits are the same.
void fill_gemm_in_order(Ops& ops);
// What is faster on processors with four vector pipes; the bits are the same.
void fill_gemm_four_pipes(Ops& ops);
void fill_rows(Ops& ops);
void fill_attention(Ops& ops);
void fill_logits(Ops& ops);
void fill_states(Ops& ops);
void fill_peaks(PeakLoops& loops);
}  // namespace avx512

// Beside AVX-512: products of bf16, two numbers a lane.
namespace avx512bf16 {
void fill_attention(Ops& ops);
void fill_peaks(PeakLoops& loops);
}  // namespace avx512bf16

namespace amx {
void fill_gemm(Ops& ops);
void fill_gemm_bf16(Ops& ops);
void fill_attention(Ops& ops);
// They fill in products with tiles emulated in memory, for tests on processors with AVX-512 alone.
void fill_gemm_emulated(Ops& ops);
void fill_gemm_bf16_emulated(Ops& ops);
void fill_attention_emulated(Ops& ops);
void fill_peaks(PeakLoops& loops);
}  // namespace amx

}  // namespace weir::kernels
