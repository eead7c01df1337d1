// The tables that this machine can run, for tests that are put to each. AMX is left out: what these
// tests call it takes from AVX-512.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu_ops.h"
#include "kernels/ops.h"

namespace weir::kernels {

inline std::vector<const Ops*> available_ops() {
  std::vector<const Ops*> tables;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (isa_available(isa)) tables.push_back(&ops_for(isa));
  return tables;
}

inline std::string name_of(const testing::TestParamInfo<const Ops*>& table) {
  return std::string(isa_name(table.param->isa));
}

}  // namespace weir::kernels
