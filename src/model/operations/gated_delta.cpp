#include "model/operations/gated_delta.h"

#include <algorithm>

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const GatedDelta& d) {
  std::string s = format("gated-delta %dx%d/%dx%d conv %d", d.value_heads, d.value_dim, d.key_heads,
                         d.key_dim, d.conv_taps);
  if (d.tiled) s += " tiled";
  if (d.key_decays) s += " decays of keys";
  if (d.decay_rank > 0) s += format(" by %d", d.decay_rank);
  if (d.beta_most != 1) s += " beta to " + number(d.beta_most);
  if (d.sigmoid_gate) s += " sigmoid gate";
  if (d.gate_rank > 0) s += format("%s by %d", d.sigmoid_gate ? "" : " gate", d.gate_rank);
  return s;
}

Result<void> check(const GatedDelta& d, int layer) {
  constexpr int kHeadsMax = 4096, kDimMax = 1024;
  if (d.key_heads < 1 || d.value_heads > kHeadsMax || d.value_heads < 1 ||
      d.value_heads % d.key_heads != 0)
    return wrong(layer, "expected at most " + std::to_string(kHeadsMax) +
                            " linear_num_value_heads, a multiple of linear_num_key_heads; found " +
                            std::to_string(d.value_heads) + " and " + std::to_string(d.key_heads));
  if (std::min(d.key_dim, d.value_dim) < 1 || std::max(d.key_dim, d.value_dim) > kDimMax)
    return wrong(layer, "expected linear_key_head_dim and linear_value_head_dim from 1 to " +
                            std::to_string(kDimMax) + ", found " + std::to_string(d.key_dim) +
                            " and " + std::to_string(d.value_dim));
  if (d.conv_taps < 2 || d.conv_taps > kTapsMax)
    return wrong(layer, "expected a linear_conv_kernel_dim from 2 to " + std::to_string(kTapsMax) +
                            ", found " + std::to_string(d.conv_taps));
  constexpr int kRankMax = 1 << 16;
  WEIR_TRY(check_size(layer, "the decays' rank", d.decay_rank, 0, kRankMax));
  WEIR_TRY(check_size(layer, "the gates' rank", d.gate_rank, 0, kRankMax));
  return check_not_negative(layer, {{"rms_norm_eps", d.norm_eps}});
}

}  // namespace weir::model
