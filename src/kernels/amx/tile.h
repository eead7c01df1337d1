// The AMX instructions that kernels use, in one shape: HardwareTiles issues them, EmulatedTiles
// does the same on ordinary memory, so that layouts and loops are tested on any AVX-512 machine.
//
// Tiles are numbered by template arguments, as the instructions demand. Both kinds are configured
// by shapes of kTileCount tiles; a tile has at most 16 rows of 64 bytes.
#pragma once

#include <cstdint>

#include "kernels/unroll.h"

namespace weir::kernels::amx {

inline constexpr int kTileCount = 8;

// The operand of ldtilecfg, as the processor defines it.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

class HardwareTiles {
 public:
  // Own assembly: g++ 12's intrinsic tells the compiler that 8 of the 64 bytes are read.
  WEIR_INLINE explicit HardwareTiles(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
  // Frees the processor from saving 8 KiB at every switch of threads.
  WEIR_INLINE ~HardwareTiles() { asm volatile("tilerelease"); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int kTile>
  WEIR_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  WEIR_INLINE void load(const void* at, int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(at), "r"(stride) : "memory");
  }
  template <int kTile>
  WEIR_INLINE void store(void* at, int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(at), "r"(stride) : "memory");
  }
  // Tile kC of int32 += tile kA of int8 [rows][4 n] times tile kB of uint8 [n][columns][4].
  template <int kC, int kA, int kB>
  WEIR_INLINE void multiply_s8_u8() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
  // Tile kC of float32 += tile kA of bf16 [rows][2 n] times tile kB of bf16 [n][columns][2].
  template <int kC, int kA, int kB>
  WEIR_INLINE void multiply_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};

// Not inlined: only compile time depends on it.
class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileShapes& shapes) : shapes_(shapes) {}

  template <int kTile>
  [[gnu::noinline]] void zero() {
    for (auto& row : tiles_[kTile])
      for (uint8_t& byte : row) byte = 0;
  }
  template <int kTile>
  [[gnu::noinline]] void load(const void* at, int64_t stride) {
    zero<kTile>();
    for (int r = 0; r < shapes_.rows[kTile]; ++r)
      __builtin_memcpy(tiles_[kTile][r], static_cast<const uint8_t*>(at) + r * stride,
                       shapes_.row_bytes[kTile]);
  }
  template <int kTile>
  [[gnu::noinline]] void store(void* at, int64_t stride) {
    for (int r = 0; r < shapes_.rows[kTile]; ++r)
      __builtin_memcpy(static_cast<uint8_t*>(at) + r * stride, tiles_[kTile][r],
                       shapes_.row_bytes[kTile]);
  }
  // The processor faults where shapes do not fit; here the sums go wrong, and the test fails.
  template <int kC, int kA, int kB>
  bool fit() const {
    return shapes_.rows[kB] == shapes_.row_bytes[kA] / 4 && shapes_.rows[kC] == shapes_.rows[kA] &&
           shapes_.row_bytes[kC] == shapes_.row_bytes[kB];
  }
  template <int kC, int kA, int kB>
  [[gnu::noinline]] void multiply_s8_u8() {
    const int quads = shapes_.row_bytes[kA] / 4;
    for (int m = 0; fit<kC, kA, kB>() && m < shapes_.rows[kC]; ++m) {
      for (int n = 0; n < shapes_.row_bytes[kC] / 4; ++n) {
        int32_t sum;
        __builtin_memcpy(&sum, tiles_[kC][m] + 4 * n, 4);
        for (int i = 0; i < 4 * quads; ++i)
          sum += static_cast<int8_t>(tiles_[kA][m][i]) * tiles_[kB][i / 4][4 * n + i % 4];
        __builtin_memcpy(tiles_[kC][m] + 4 * n, &sum, 4);
      }
    }
  }
  template <int kC, int kA, int kB>
  [[gnu::noinline]] void multiply_bf16() {
    const int pairs = shapes_.row_bytes[kA] / 4;
    for (int m = 0; fit<kC, kA, kB>() && m < shapes_.rows[kC]; ++m) {
      for (int n = 0; n < shapes_.row_bytes[kC] / 4; ++n) {
        float even = 0, odd = 0, sum;
        for (int i = 0; i < pairs; ++i) {
          even = __builtin_fmaf(bf16<kA>(m, 2 * i), bf16<kB>(i, 2 * n), even);
          odd = __builtin_fmaf(bf16<kA>(m, 2 * i + 1), bf16<kB>(i, 2 * n + 1), odd);
        }
        __builtin_memcpy(&sum, tiles_[kC][m] + 4 * n, 4);
        sum += even + odd;
        __builtin_memcpy(tiles_[kC][m] + 4 * n, &sum, 4);
      }
    }
  }

 private:
  template <int kTile>
  float bf16(int row, int i) const {
    uint16_t half;
    __builtin_memcpy(&half, tiles_[kTile][row] + 2 * i, 2);
    const uint32_t bits = uint32_t{half} << 16;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  }

  TileShapes shapes_;
  uint8_t tiles_[kTileCount][16][64] = {};
};

}  // namespace weir::kernels::amx
