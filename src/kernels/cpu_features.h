// What this processor and the kernel beneath offer, from cpuid, xgetbv and arch_prctl.
//
// Threads: any; the answers are found once. The permission for AMX tiles is asked for then, and
// holds for threads that start afterwards.
#pragma once

#include <string>

namespace weir::kernels {

struct CpuFeatures {
  bool avx2 = false;    // AVX2, FMA, F16C, BMI2: what the files in avx2/ are compiled for.
  bool avx512 = false;  // F, BW, VL, DQ, VNNI on top.
  bool amx = false;     // AMX-TILE, INT8, BF16 and AVX512-BF16 on top, tiles permitted.
  // 512-bit arithmetic has four pipes, of which two multiply (AMD since Zen 4, in two halves
  // there); Intel has two for everything.
  bool four_pipes = false;
  bool fast_bf16 = false;  // AVX512-BF16, whose products are as many a cycle as float32's.
  // Memory gives a core the most where weights are fetched in the order in which they are read
  // (AMD); Intel's cores are given more when they fetch several pages at a time.
  bool fetch_in_order = false;
  std::string name;  // "Intel(R) Xeon(R) ..."
};

const CpuFeatures& cpu_features();

}  // namespace weir::kernels
