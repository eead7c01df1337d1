#include "model/operations/check_sizes.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops.h"

namespace weir::model {

Result<void> wrong(int layer, const std::string& what) {
  return fail(ErrorCode::kConfig, "config.json: layer " + std::to_string(layer) + ": " + what);
}

Result<void> check_positive(int layer, std::initializer_list<Number> numbers) {
  for (const Number& n : numbers)
    if (!(n.value > 0 && std::isfinite(n.value)))
      return wrong(layer, std::string("expected a positive and finite number by ") + n.key +
                              ", found " + std::to_string(n.value));
  return {};
}

Result<void> check_not_negative(int layer, std::initializer_list<Number> numbers) {
  for (const Number& n : numbers)
    if (!(n.value >= 0 && std::isfinite(n.value)))
      return wrong(layer, std::string("expected a finite number of at least 0 by ") + n.key +
                              ", found " + std::to_string(n.value));
  return {};
}

Result<void> check_size(int layer, const char* key, int found, int least, int most) {
  if (found >= least && found <= most) return {};
  return wrong(layer, std::string("expected a ") + key + " from " + std::to_string(least) + " to " +
                          std::to_string(most) + ", found " + std::to_string(found));
}

Result<void> check_index(int layer, const IndexSizes& sizes) {
  constexpr int kHeadsMax = 1024, kTopMax = 1 << 16;
  WEIR_TRY(check_size(layer, "index_n_heads", sizes.heads, 1, kHeadsMax));
  WEIR_TRY(check_size(layer, "index_head_dim", sizes.dim, std::max(sizes.rope_dim, 1),
                      kernels::kIndexDimMax));
  WEIR_TRY(check_size(layer, "index_n_heads * index_head_dim", sizes.heads * sizes.dim, 1,
                      kernels::kIndexNumbersMax));
  return check_size(layer, "index_topk", sizes.top_k, 1, kTopMax);
}

}  // namespace weir::model
