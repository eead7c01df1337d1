#include "kernels/span_ops.h"

#include "base/check.h"
#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

template <void (*... kFill)(SpanOps&)>
const SpanOps& filled() {
  static const SpanOps ops = [] {
    SpanOps made{};
    (kFill(made), ...);
    return made;
  }();
  return ops;
}

}  // namespace

const SpanOps& span_ops_for(Isa isa) {
  CHECK(isa_available(isa));
  if (isa == Isa::kAmx) return filled<scalar::fill_spans, amx::fill_spans>();
  if (isa == Isa::kAvx512 && cpu_features().fast_bf16)
    return filled<scalar::fill_spans, avx512bf16::fill_spans>();
  return filled<scalar::fill_spans>();
}

}  // namespace weir::kernels
