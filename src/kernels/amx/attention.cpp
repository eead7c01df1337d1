// attend_prompt by AMX tiles.
#include "kernels/amx/product.h"
#include "kernels/avx512bf16/coded_prompt.h"

namespace weir::kernels::amx {
namespace {

template <class Kind>
void fill(Ops& ops) {
  ops.attend_prompt = avx512bf16::attend_prompt<AttentionTiles<Kind>>;
  ops.attend_prompt_from = 0;
}

template <class Kind>
void fill(CodedOps& ops) {
  ops.attend_prompt = avx512bf16::attend_codes<AttentionTiles<Kind>>;
}

}  // namespace

void fill_attention(Ops& ops) { fill<HardwareTiles>(ops); }
void fill_attention_emulated(Ops& ops) { fill<EmulatedTiles>(ops); }
void fill_coded_attention(CodedOps& ops) { fill<HardwareTiles>(ops); }
void fill_coded_attention_emulated(CodedOps& ops) { fill<EmulatedTiles>(ops); }

}  // namespace weir::kernels::amx
