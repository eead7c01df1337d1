#include "kernels/pair_ops.h"

#include "base/check.h"
#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

PairOps fill(bool vectors) {
  PairOps ops{};
  scalar::fill_pairs(ops);
  if (vectors) avx512bf16::fill_pairs(ops);
  return ops;
}

}  // namespace

const PairOps& pair_ops_for(Isa isa) {
  CHECK(isa_available(isa));
  static const PairOps plain = fill(false), vectors = fill(true);
  return isa >= Isa::kAvx512 && cpu_features().fast_bf16 ? vectors : plain;
}

}  // namespace weir::kernels
