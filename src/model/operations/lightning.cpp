#include "model/operations/lightning.h"

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const Lightning& l) { return format("lightning %dx%d", l.num_heads, l.head_dim); }

Result<void> check(const Lightning& l, int layer) {
  WEIR_TRY(check_size(layer, "num_attention_heads", l.num_heads, 1, 4096));
  WEIR_TRY(check_size(layer, "head_dim", l.head_dim, 1, 1024));
  if (l.rates.size() != static_cast<size_t>(l.num_heads))
    return wrong(layer, "expected a rate for each of " + std::to_string(l.num_heads) +
                            " heads, found " + std::to_string(l.rates.size()));
  for (const float rate : l.rates) WEIR_TRY(check_not_negative(layer, {{"a head's rate", rate}}));
  return check_not_negative(layer, {{"rms_norm_eps", l.norm_eps}});
}

}  // namespace weir::model
