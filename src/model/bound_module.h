// BoundModule: a linear layer or an embedding that a model has bound, by its path in the
// checkpoint.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "card/weight_format.h"

namespace weir::model {

struct BoundModule {
  std::string path;
  std::vector<int64_t> rows;  // What matrices are stacked in, then the rows of one.
  int32_t k = 0;
  bool quantised = false;
  card::MatrixFormat format{};  // If it is.
  bool turned = false;          // Floats [k, n].
  bool unit_rows = false;       // Its rows are divided by their lengths when they are used.
};

// As mlx-lm names them: what chooses experts, which it keeps at 8 bits.
inline bool is_router(std::string_view path) {
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return last == "gate" || last == "router" || last == "shared_expert_gate";
}

}  // namespace weir::model
