// Attention that amx/ falls back to, where heads do not fit its tiles.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::avx512 {

void attend(const KvPages& kv, const AttendArgs& args);

}  // namespace weir::kernels::avx512
