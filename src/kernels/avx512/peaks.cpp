#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_peaks(PeakLoops&) {}

}  // namespace weir::kernels::avx512
