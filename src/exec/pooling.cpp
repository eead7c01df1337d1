#include "exec/pooling.h"

#include <algorithm>

namespace weir::exec {

void add_part(const kernels::Ops& ops, const PooledPart& part, std::span<const float> states,
              std::span<float> vector) {
  const auto width = static_cast<int32_t>(vector.size());
  if (part.pooling != Pooling::kMean) {
    std::ranges::copy(states, vector.begin());
    return;
  }
  if (part.first_position == 0) std::ranges::fill(vector, 0.0f);
  for (const float* row = states.data(); row != states.data() + states.size(); row += width)
    ops.add_scaled(row, 1, width, vector.data());
  if (part.last) ops.scale(1 / static_cast<float>(part.prompt_length), width, vector.data());
}

}  // namespace weir::exec
