#include "kernels/isa.h"

namespace weir::kernels::amx {

void fill_peaks(PeakLoops&) {}

}  // namespace weir::kernels::amx
