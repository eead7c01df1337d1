// Tiles of few rows over numbers that are not plain, unpacked in registers: they are read once, or
// from few rows, so that spreading them to memory first would be most of the work.
#include "kernels/avx512/int8_tile.h"

namespace weir::kernels::avx512 {
namespace {

template <Numbers kNumbers, bool kSixteen, class Fetch>
void run_rows(int32_t rows, const Tile& tile, Fetch& next) {
  static_assert(kSpreadRowsMin == 5);
  switch (rows) {
    case 1:
      return run_tile<1, kNumbers, kSixteen, Scaling::kF32>(tile, next);
    case 2:
      return run_tile<2, kNumbers, kSixteen, Scaling::kF32>(tile, next);
    case 3:
      return run_tile<3, kNumbers, kSixteen, Scaling::kF32>(tile, next);
    default:
      return run_tile<4, kNumbers, kSixteen, Scaling::kF32>(tile, next);
  }
}

template <bool kSixteen, class Fetch>
void run_numbers(Numbers numbers, int32_t rows, const Tile& tile, Fetch& next) {
  switch (numbers) {
    case Numbers::kTwo:
      return run_rows<Numbers::kTwo, kSixteen>(rows, tile, next);
    case Numbers::kThree:
      return run_rows<Numbers::kThree, kSixteen>(rows, tile, next);
    case Numbers::kTable:
      return run_rows<Numbers::kTable, kSixteen>(rows, tile, next);
    case Numbers::kFive:
      return run_rows<Numbers::kFive, kSixteen>(rows, tile, next);
    case Numbers::kSix:
      return run_rows<Numbers::kSix, kSixteen>(rows, tile, next);
    case Numbers::kFour:
      if constexpr (kSixteen) run_rows<Numbers::kFour, kSixteen>(rows, tile, next);
      return;
    case Numbers::kEight:
      if constexpr (kSixteen) run_rows<Numbers::kEight, kSixteen>(rows, tile, next);
      return;
  }
}

}  // namespace

template <class Fetch>
void run_unpacking(Numbers numbers, bool sixteen, int32_t rows, const Tile& tile, Fetch& next) {
  if (sixteen)
    run_numbers<true>(numbers, rows, tile, next);
  else
    run_numbers<false>(numbers, rows, tile, next);
}

template void run_unpacking(Numbers, bool, int32_t, const Tile&, PageFetch&);
template void run_unpacking(Numbers, bool, int32_t, const Tile&, OrderedFetch&);

}  // namespace weir::kernels::avx512
