// The tables of kernels that a test compares with scalar's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"
#include "kernels/isa.h"

namespace weir::kernels {

// Every table of kernels on this machine, those for other processors and emulated tiles included.
inline std::vector<std::pair<std::string, Ops>> tables() {
  std::vector<std::pair<std::string, Ops>> list;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAmx})
    if (isa_available(isa)) list.emplace_back(isa_name(isa), ops_for(isa));
  if (isa_available(Isa::kAvx2)) {
    Ops pages = ops_for(Isa::kAvx2), in_order = pages;
    avx2::fill_gemm(pages);
    avx2::fill_gemm_in_order(in_order);
    list.emplace_back("avx2, fetching pages", pages);
    list.emplace_back("avx2, fetching in order", in_order);
  }
  if (isa_available(Isa::kAvx512)) {
    Ops single = ops_for(Isa::kAvx512), pairs = single, emulated = single;
    avx512::fill_gemm(single);
    avx512::fill_gemm_in_order(pairs);
    avx512::fill_gemm_four_pipes(pairs);
    list.emplace_back("one block of columns", single);
    list.emplace_back("two blocks of columns", pairs);
    amx::fill_gemm_emulated(emulated);
    if (cpu_features().fast_bf16) amx::fill_gemm_bf16_emulated(emulated);
    list.emplace_back("emulated tiles", emulated);
  }
  return list;
}

}  // namespace weir::kernels
