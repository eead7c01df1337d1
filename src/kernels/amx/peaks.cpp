#include "kernels/amx/tile.h"
#include "kernels/isa.h"

namespace weir::kernels::amx {
namespace {

TileShapes whole_tiles() {
  TileShapes shapes;
  for (int i = 0; i < kTileCount; ++i) {
    shapes.rows[i] = 16;
    shapes.row_bytes[i] = 64;
  }
  return shapes;
}

// Four tiles of sums, two operands of each kind: the shape of a register-blocked product.
int64_t int8_loop(int64_t iterations) {
  const TileShapes shapes = whole_tiles();
  HardwareTiles tiles(shapes);
  repeat<kTileCount>([&](auto i) WEIR_INLINE_LAMBDA { tiles.zero<i.value>(); });
  for (int64_t n = 0; n < iterations; ++n) {
    tiles.multiply_s8_u8<0, 4, 6>();
    tiles.multiply_s8_u8<1, 4, 7>();
    tiles.multiply_s8_u8<2, 5, 6>();
    tiles.multiply_s8_u8<3, 5, 7>();
  }
  return iterations * 4 * 16 * 16 * 64 * 2;
}

int64_t bf16_loop(int64_t iterations) {
  const TileShapes shapes = whole_tiles();
  HardwareTiles tiles(shapes);
  repeat<kTileCount>([&](auto i) WEIR_INLINE_LAMBDA { tiles.zero<i.value>(); });
  for (int64_t n = 0; n < iterations; ++n) {
    tiles.multiply_bf16<0, 4, 6>();
    tiles.multiply_bf16<1, 4, 7>();
    tiles.multiply_bf16<2, 5, 6>();
    tiles.multiply_bf16<3, 5, 7>();
  }
  return iterations * 4 * 16 * 16 * 32 * 2;
}

}  // namespace

void fill_peaks(PeakLoops& loops) {
  loops.int8 = int8_loop;
  loops.bf16 = bf16_loop;
}

}  // namespace weir::kernels::amx
