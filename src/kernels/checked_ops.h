// A table of kernels that checks what ops.h REQUIRES before each call: what debug builds run with.
//
// Threads: any.
#pragma once

#include <type_traits>

#include "base/check.h"
#include "kernels/ops.h"
#include "kernels/requirements.h"

namespace weir::kernels {

// One entry of the checked table. An entry is a plain function, which holds nothing: the table that
// it calls is part of its type.
template <auto kInner, auto kEntry, auto kRequirement, class Signature>
struct CheckedEntry;

template <auto kInner, auto kEntry, auto kRequirement, class R, class... Args>
struct CheckedEntry<kInner, kEntry, kRequirement, R (*)(Args...)> {
  static R call(Args... args) {
    // The function's name has the entry's in it.
    if (const requirements::Broken broken = kRequirement(args...))
      check_failed(__PRETTY_FUNCTION__, __LINE__, broken);
    return (kInner().*kEntry)(args...);
  }
};

// The table that calls `kInner()`, a const Ops&, and aborts where a caller breaks a requirement.
template <auto kInner>
Ops checked_ops() {
  Ops ops{};  // An entry that is left out here is null.
  ops.isa = kInner().isa;
  ops.prompts_in_bf16 = kInner().prompts_in_bf16;
  ops.attend_prompt_from = kInner().attend_prompt_from;
  const auto check = [&ops]<auto kEntry, auto kRequirement>() {
    using Signature = std::remove_reference_t<decltype(ops.*kEntry)>;
    ops.*kEntry = CheckedEntry<kInner, kEntry, kRequirement, Signature>::call;
  };
  check.template operator()<&Ops::quantise_rows, requirements::quantise_rows>();
  check.template operator()<&Ops::gemm_quant_int8, requirements::gemm_quant_int8>();
  check.template operator()<&Ops::round_rows, requirements::round_rows>();
  check.template operator()<&Ops::gemm_quant_bf16, requirements::gemm_quant_bf16>();
  check.template operator()<&Ops::gemm_float_bf16, requirements::gemm_float_bf16>();
  check.template operator()<&Ops::gemm_float8_bf16, requirements::gemm_float8_bf16>();
  check.template operator()<&Ops::gemm_quant_f32, requirements::gemm_quant_f32>();
  check.template operator()<&Ops::gemm_float_f32, requirements::gemm_float_f32>();
  check.template operator()<&Ops::gemm_float8_f32, requirements::gemm_float8_f32>();
  check.template operator()<&Ops::add_low_rank, requirements::add_low_rank>();
  check.template operator()<&Ops::dequantise_row, requirements::dequantise_row>();
  check.template operator()<&Ops::widen_row, requirements::widen_row>();
  check.template operator()<&Ops::widen_float8_row, requirements::widen_float8_row>();
  check.template operator()<&Ops::rms_norm, requirements::rms_norm>();
  check.template operator()<&Ops::layer_norm, requirements::layer_norm>();
  check.template operator()<&Ops::add_scaled, requirements::add_scaled>();
  check.template operator()<&Ops::scale, requirements::scale>();
  check.template operator()<&Ops::product, requirements::product>();
  check.template operator()<&Ops::softcap, requirements::softcap>();
  check.template operator()<&Ops::gated_act, requirements::gated_act>();
  check.template operator()<&Ops::act, requirements::act>();
  check.template operator()<&Ops::xielu, requirements::xielu>();
  check.template operator()<&Ops::rope, requirements::rope>();
  check.template operator()<&Ops::store_keys, requirements::store_keys>();
  check.template operator()<&Ops::store_values, requirements::store_values>();
  check.template operator()<&Ops::attend, requirements::attend>();
  check.template operator()<&Ops::attend_prompt, requirements::attend>();
  check.template operator()<&Ops::index_scores, requirements::index_scores>();
  check.template operator()<&Ops::conv_step, requirements::conv_step>();
  check.template operator()<&Ops::delta_run, requirements::delta_run>();
  check.template operator()<&Ops::delta_decays, requirements::delta_decays>();
  check.template operator()<&Ops::decay_run, requirements::decay_run>();
  check.template operator()<&Ops::selective_scan, requirements::selective_scan>();
  check.template operator()<&Ops::argmax, requirements::argmax>();
  check.template operator()<&Ops::log_sum_exp, requirements::log_sum_exp>();
  check.template operator()<&Ops::softmax, requirements::softmax>();
  return ops;
}

}  // namespace weir::kernels
