#include "model/operations/mamba1.h"

#include "kernels/ops.h"
#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const Mamba1& m) {
  std::string s = format("mamba1 %d state %d steps of rank %d conv %d", m.inner, m.state_dim,
                         m.step_rank, m.conv_taps);
  if (m.norms == Mamba1::kPlain) s += " plain norms";
  if (m.norms == Mamba1::kWeighted) s += " norms";
  if (m.bias) s += " bias";
  if (m.conv_bias) s += " conv-bias";
  return s;
}

Result<void> check(const Mamba1& m, int layer) {
  constexpr int kStatesMax = 1024;
  WEIR_TRY(check_size(layer, "number of Mamba's channels", m.inner, 1, kernels::kMaxLayerK));
  WEIR_TRY(check_size(layer, "Mamba's state_size", m.state_dim, 1, kStatesMax));
  WEIR_TRY(check_size(layer, "Mamba's time_step_rank", m.step_rank, 1, kernels::kMaxLayerK));
  WEIR_TRY(check_size(layer, "Mamba's conv_kernel", m.conv_taps, 2, kTapsMax));
  return check_not_negative(layer, {{"the eps of Mamba's norms", m.norm_eps}});
}

}  // namespace weir::model
