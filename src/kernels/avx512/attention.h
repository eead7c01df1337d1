// What attention of prompts in bf16 (avx512bf16/, amx/) takes from here: attention where heads do
// not fit its tiles, and rotations.
#pragma once

#include "kernels/coded_ops.h"
#include "kernels/ops.h"

namespace weir::kernels::avx512 {

void attend(const KvPages& kv, const AttendArgs& args);
void attend_codes(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                  const AttendArgs& args);
void rotate(const Rotation& rotation, bool back, int32_t heads, float* x);

}  // namespace weir::kernels::avx512
