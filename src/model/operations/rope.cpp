#include "model/operations/rope.h"

#include <algorithm>
#include <cmath>

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

size_t axis_of(const Rope& r, int i) {
  if (r.sections_interleaved) {
    const auto axis = static_cast<size_t>(i % 3);
    return i / 3 < r.sections[axis] ? axis : 0;
  }
  return i < r.sections[0] ? 0 : i < r.sections[0] + r.sections[1] ? 1 : 2;
}

std::string text(const Rope& r) {
  if (r.dim == 0) return " nope";
  static constexpr std::array kScaling = {"",        " linear", " dynamic",
                                          " llama3", " yarn",   " longrope"};
  std::string s = format(" rope %d@%s", r.dim, number(r.theta).c_str());
  if (r.still_pairs > 0) s += format(" %d pairs of them", r.dim / 2 - r.still_pairs);
  s += kScaling[r.scaling];
  if (r.factor != 1) s += " x" + number(r.factor);
  if (r.scaling > Rope::kLinear) s += " of " + number(r.original_context);
  if (r.attention_factor != 1) s += " amplitude " + number(r.attention_factor);
  if (r.long_attention_factor != 0) s += " or " + number(r.long_attention_factor);
  if (r.layout == Rope::kInterleaved) s += " interleaved";
  if (r.backward) s += " backward";
  return s;
}

Result<void> check(const Rope& r, int layer) {
  const auto half = static_cast<size_t>(r.dim / 2);
  if (r.scaling == Rope::kLongRope &&
      (r.short_factor.size() != half || r.long_factor.size() != half))
    return wrong(layer, "expected short_factor and long_factor of " + std::to_string(half) +
                            " numbers, found " + std::to_string(r.short_factor.size()) + " and " +
                            std::to_string(r.long_factor.size()));
  const int pairs = r.sections[0] + r.sections[1] + r.sections[2];
  if (std::ranges::any_of(r.sections, [](int section) { return section < 0; }) ||
      (pairs != 0 && pairs != r.dim / 2))
    return wrong(layer, "expected sections of " + std::to_string(half) +
                            " rotary pairs in all, found " + std::to_string(pairs));
  for (const float factor : r.short_factor)
    WEIR_TRY(check_positive(layer, {{"short_factor", factor}}));
  for (const float factor : r.long_factor)
    WEIR_TRY(check_positive(layer, {{"long_factor", factor}}));
  if (r.still_pairs < 0 || r.still_pairs > r.dim / 2)
    return wrong(layer, "expected a partial_rotary_factor from 0 to 1, found one by which " +
                            std::to_string(r.still_pairs) + " pairs do not turn");
  if (r.dim > 0 && !(r.theta > 1 && std::isfinite(r.theta)))
    return wrong(layer, "expected a finite rope_theta above 1, found " + std::to_string(r.theta));
  WEIR_TRY(check_positive(layer, {{"factor", r.factor}, {"attention_factor", r.attention_factor}}));
  WEIR_TRY(check_not_negative(layer, {{"long_mscale", r.long_attention_factor}}));
  if (r.scaling > Rope::kLinear && !(r.original_context >= 1 && std::isfinite(r.original_context)))
    return wrong(layer, "expected original_max_position_embeddings of at least 1, found " +
                            std::to_string(r.original_context));
  if (r.scaling == Rope::kDynamic && r.dim <= 2)  // Its exponent is dim / (dim - 2).
    return wrong(layer, "expected more than 2 rotary dimensions with rope_type dynamic, found " +
                            std::to_string(r.dim));
  if (r.scaling == Rope::kLlama3) {
    WEIR_TRY(check_positive(
        layer, {{"low_freq_factor", r.low_freq_factor}, {"high_freq_factor", r.high_freq_factor}}));
    if (r.high_freq_factor <= r.low_freq_factor)
      return wrong(layer, "expected a high_freq_factor above the low_freq_factor " +
                              std::to_string(r.low_freq_factor) + ", found " +
                              std::to_string(r.high_freq_factor));
  }
  if (r.scaling == Rope::kYarn)
    return check_positive(layer, {{"beta_fast", r.beta_fast}, {"beta_slow", r.beta_slow}});
  return {};
}

}  // namespace weir::model
