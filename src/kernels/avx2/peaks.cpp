#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_peaks(PeakLoops&) {}

}  // namespace weir::kernels::avx2
