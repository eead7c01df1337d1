// gemm_quant_int8 with VNNI: tiles of 16 columns by 1 to 12 rows (int8_tile.h).
#include <immintrin.h>

#include "kernels/avx512/adjacent_rows.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/int8_tile.h"
#include "kernels/avx512/panel.h"
#include "kernels/avx512/spread.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kTileRows = 12;

template <Numbers kNumbers, bool kSixteen, Scaling kScaling, class Fetch>
void run_rows(int32_t rows, const Tile& tile, Fetch& next) {
  using Run = void (*)(const Tile&, Fetch&);
  static constexpr Run kRun[kTileRows + 1] = {
      nullptr,
      run_tile<1, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<2, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<3, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<4, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<5, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<6, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<7, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<8, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<9, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<10, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<11, kNumbers, kSixteen, kScaling, Fetch>,
      run_tile<12, kNumbers, kSixteen, kScaling, Fetch>,
  };
  kRun[rows](tile, next);
}

template <Numbers kNumbers, class Fetch>
void run_scaled(Scaling scaling, int32_t rows, const Tile& tile, Fetch& next) {
  switch (scaling) {
    case Scaling::kStoredF16:
      return run_rows<kNumbers, false, Scaling::kStoredF16>(rows, tile, next);
    case Scaling::kPanelMagic:
      return run_rows<kNumbers, false, Scaling::kPanelMagic>(rows, tile, next);
    case Scaling::kF32:
      return run_rows<kNumbers, false, Scaling::kF32>(rows, tile, next);
  }
}

// Where the scales of a block are taken from; `panel` is filled if they come from there.
Scaling prepare_scales(const QuantMatrix& w, const uint8_t* scales, bool once, void* panel,
                       Tile& tile) {
  tile.f16_scales = scales;
  tile.panel = static_cast<const GroupScales*>(panel);
  tile.f32_scales = static_cast<const float(*)[2][kBlockRows]>(panel);
  if (plain_scales(w) && plain_numbers(w)) {
    // One tile reads each scale once: straight from the matrix.
    if (once && w.scale_type == FloatType::kF16) return Scaling::kStoredF16;
    if (w.scale_type == FloatType::kF32) {
      tile.f32_scales = reinterpret_cast<const float(*)[2][kBlockRows]>(scales);
      return Scaling::kF32;
    }
    if (widen_scales(w, scales, static_cast<GroupScales*>(panel))) return Scaling::kPanelMagic;
  }
  spread_scales(w, scales, 0, w.k / w.group, static_cast<float(*)[2][kBlockRows]>(panel));
  return Scaling::kF32;
}

}  // namespace

template <class Fetch>
void gemm_columns(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                  const TileMemory& memory) {
  const int32_t rows = range.rows;
  const int64_t word_bytes = block_word_bytes(w), scale_bytes = block_scale_bytes(w);
  const int32_t tiles = (rows + kTileRows - 1) / kTileRows;
  const int32_t blocks = (range.end - range.begin + kBlockRows - 1) / kBlockRows;
  const bool plain = plain_numbers(w), sixteen = w.group < kPackStep;
  const Numbers numbers = numbers_of(w);
  const bool spread = !plain && rows >= kSpreadRowsMin;
  Fetch none;
  // Tiles fetch as they go over the numbers, of which there are more once they are spread.
  Fetch next(range.next, {.words = w.words + range.begin / kBlockRows * word_bytes,
                          .bytes = blocks * word_bytes,
                          .passes = spread ? tiles * 8 / w.bits : tiles,
                          .stretch = word_bytes});
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t block = column / kBlockRows;
    Tile tile;
    const Scaling scaling =
        prepare_scales(w, w.scales + block * scale_bytes, tiles == 1, memory.scales, tile);
    tile.words = w.words + block * word_bytes;
    if (spread) {
      spread_numbers(w, tile.words, w.k / kPackStep, memory.numbers);
      tile.words = memory.numbers;
    }
    tile.grid = w.grid;
    tile.q_stride = w.k;
    tile.groups = w.k / w.group;
    tile.steps = w.group / kPackStep;
    tile.y_stride = range.y_stride;
    tile.columns = column_mask(column, range.end);
    for (int32_t t = 0; t < tiles; ++t) {
      // Balanced: sizes differ by one at most.
      const int64_t first = int64_t{rows} * t / tiles;
      const int32_t count = static_cast<int32_t>(int64_t{rows} * (t + 1) / tiles - first);
      tile.q = x.q + first * w.k;
      tile.next_q = x.q + (t + 1 < tiles ? first + count : 0) * w.k;
      tile.scale = x.scale + first * tile.groups;
      tile.sum = x.sum + first * tile.groups;
      tile.y = range.y + first * range.y_stride + column;
      Fetch& fetch = t == 0 || Fetch::kEveryPass ? next : none;
      if (!plain && !spread)
        run_unpacking(numbers, sixteen, count, tile, fetch);
      else if (sixteen)
        run_rows<Numbers::kEight, true, Scaling::kF32>(count, tile, fetch);
      else if (spread || w.bits == 8)
        run_scaled<Numbers::kEight>(scaling, count, tile, fetch);
      else
        run_scaled<Numbers::kFour>(scaling, count, tile, fetch);
    }
  }
}

template void gemm_columns<OrderedFetch>(const QuantMatrix&, const QuantRows&, const GemmRange&,
                                         const TileMemory&);

void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch) {
  for_adjacent_rows(w, x, range, scratch, gemm_columns<PageFetch>);
}

}  // namespace weir::kernels::avx512
