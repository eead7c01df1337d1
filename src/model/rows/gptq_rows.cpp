#include "model/rows/gptq_rows.h"

#include <algorithm>
#include <string>

#include "model/rows/stored_numbers.h"

namespace weir::model {

GptqRows::GptqRows(const Sizes& sizes, int64_t n, int32_t zero_less)
    : GroupedRows("GPTQ", std::to_string(n) + " " + std::to_string(zero_less), sizes),
      n_(n),
      zero_less_(zero_less) {}

// 32 numbers at a time, which begin with a word; rows inside, for their words are neighbours.
void GptqRows::codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const {
  const BitStream stream = {.bits = sizes().bits};
  for (int32_t begin = 0; begin < sizes().k; begin += 32) {
    const int32_t end = std::min(begin + 32, sizes().k);
    const std::byte* words = bases[0] + int64_t{begin} * sizes().bits / 32 * n_ * 4;
    for (int32_t i = 0; i < count; ++i)
      for (int32_t c = begin; c < end; ++c)
        out[i][c] = stream.at(words + (first + i) * 4, c - begin, n_);
  }
}

float GptqRows::scale(const Bases& bases, int64_t row, int64_t group) const {
  return load_float(sizes().scale_type, bases[2], group * n_ + row);
}

uint8_t GptqRows::zero(const Bases& bases, int64_t row, int64_t group) const {
  const BitStream stream = {.bits = sizes().bits};
  const std::byte* words = bases[1] + group * stream.words(n_) * 4;
  const int32_t mask = (1 << sizes().bits) - 1;
  return static_cast<uint8_t>((stream.at(words, row) + zero_less_) & mask);
}

}  // namespace weir::model
