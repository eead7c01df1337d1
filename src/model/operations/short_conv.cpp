#include "model/operations/short_conv.h"

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const ShortConv& c) {
  return format("short-conv %d taps %d%s", c.channels, c.taps, c.bias ? " bias" : "");
}

Result<void> check(const ShortConv& c, int layer) {
  WEIR_TRY(check_size(layer, "conv_dim", c.channels, 1, 1 << 20));
  return check_size(layer, "conv_L_cache", c.taps, 2, kTapsMax);
}

}  // namespace weir::model
