// attend_prompt by vectors.
#include "kernels/avx512bf16/coded_prompt.h"
#include "kernels/avx512bf16/vector_product.h"

namespace weir::kernels::avx512bf16 {

void fill_attention(Ops& ops) {
  ops.attend_prompt = attend_prompt<VectorTiles>;
  ops.attend_prompt_from = 2048;  // bench/README.md, "Tiles on AMD Zen 5".
}

void fill_coded_attention(CodedOps& ops) { ops.attend_prompt = attend_codes<VectorTiles>; }

}  // namespace weir::kernels::avx512bf16
