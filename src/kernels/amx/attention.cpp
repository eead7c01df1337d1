// attend_prompt by AMX tiles.
#include "kernels/amx/product.h"
#include "kernels/avx512bf16/attend_prompt.h"

namespace weir::kernels::amx {
namespace {

constexpr TileShapes kShapes = shapes_for(kTileRows, kTileRows);

struct AttentionTiles : HardwareTiles {
  WEIR_INLINE AttentionTiles() : HardwareTiles(kShapes) {}
};

}  // namespace

void fill_attention(Ops& ops) {
  ops.attend_prompt = avx512bf16::attend_prompt<AttentionTiles>;
  ops.attend_prompt_from = 0;
}

}  // namespace weir::kernels::amx
