// Attention within a span by vectors.
#include "kernels/avx512bf16/attend_span.h"
#include "kernels/avx512bf16/vector_product.h"

namespace weir::kernels::avx512bf16 {

void fill_spans(SpanOps& ops) {
  ops.fast = true;
  ops.fill_page = fill_span_page;
  ops.attend = attend_span<VectorTiles>;
}

}  // namespace weir::kernels::avx512bf16
