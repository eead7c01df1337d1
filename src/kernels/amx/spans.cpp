// Attention within a span by AMX tiles.
#include "kernels/amx/product.h"
#include "kernels/avx512bf16/attend_span.h"

namespace weir::kernels::amx {
namespace {

template <class Kind>
void fill(SpanOps& ops) {
  ops.fast = true;
  ops.fill_page = avx512bf16::fill_span_page;
  ops.attend = avx512bf16::attend_span<AttentionTiles<Kind>>;
}

}  // namespace

void fill_spans(SpanOps& ops) { fill<HardwareTiles>(ops); }
void fill_spans_emulated(SpanOps& ops) { fill<EmulatedTiles>(ops); }

}  // namespace weir::kernels::amx
