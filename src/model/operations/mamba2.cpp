#include "model/operations/mamba2.h"

#include <algorithm>

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const Mamba2& m) {
  std::string s = format("mamba2 %dx%d state %d", m.heads, m.head_dim, m.state_dim);
  if (m.groups > 1) s += format(" of %d groups", m.groups);
  s += format(" conv %d", m.conv_taps);
  if (m.step_min > 0) s += " steps from " + number(m.step_min);
  if (m.step_max < std::numeric_limits<float>::max()) s += " steps to " + number(m.step_max);
  if (m.gate == Mamba2::kAfterNorm) s += " gate after norm";
  if (m.gate == Mamba2::kNoNorm) s += " no norm";
  if (m.norm_groups > 1) s += format(" %d norms", m.norm_groups);
  if (m.bias) s += " bias";
  if (m.conv_bias) s += " conv-bias";
  if (std::ranges::any_of(m.factors, [](float f) { return f != 1; })) {
    s += " x";
    for (const float factor : m.factors) s.append(" ").append(number(factor));
  }
  return s;
}

Result<void> check(const Mamba2& m, int layer) {
  constexpr int kHeadsMax = 4096, kDimMax = 1024;
  WEIR_TRY(check_size(layer, "number of Mamba's heads", m.heads, 1, kHeadsMax));
  WEIR_TRY(check_size(layer, "Mamba's head_dim", m.head_dim, 1, kDimMax));
  WEIR_TRY(check_size(layer, "Mamba's state_size", m.state_dim, 1, kDimMax));
  WEIR_TRY(check_size(layer, "Mamba's conv_kernel", m.conv_taps, 2, kTapsMax));
  if (m.groups < 1 || m.heads % m.groups != 0)
    return wrong(layer, "expected n_groups that share " + std::to_string(m.heads) +
                            " heads evenly, found " + std::to_string(m.groups));
  if (m.norm_groups < 1 || m.inner() % m.norm_groups != 0)
    return wrong(layer, "expected norms of equal parts of " + std::to_string(m.inner()) +
                            " channels, found " + std::to_string(m.norm_groups));
  if (!(m.step_min >= 0 && m.step_min <= m.step_max))
    return wrong(layer, "expected time_step_limit from at least 0 to no less, found " +
                            std::to_string(m.step_min) + " to " + std::to_string(m.step_max));
  return check_not_negative(layer, {{"rms_norm_eps", m.norm_eps}});
}

}  // namespace weir::model
