// Blocks of any form as plain ones: bytes, and scales and biases as floats, which is what the tiles
// of all products can read. See ops.h and quant_layout.h.
//
// Threads: each function touches only its arguments.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::avx512 {

// The numbers of 32 * steps elements, whose words begin at `words`, as 8-bit words.
void spread_numbers(const QuantMatrix& w, const uint8_t* words, int32_t steps, uint8_t* out);

// Groups [begin, end) of the block whose scales begin at `scales`: out[g - begin] is 16 scales and
// 16 biases.
void spread_scales(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
                   float (*out)[2][kBlockRows]);

}  // namespace weir::kernels::avx512
