#include "kernels/cpu_ops.h"

#include <array>
#include <cstdlib>

#include "base/check.h"
#include "kernels/checked_ops.h"
#include "kernels/cpu_features.h"
#include "kernels/isa.h"

namespace weir::kernels {
namespace {

constexpr std::array<Isa, 4> kIsas = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};

Ops fill(Isa isa) {
  Ops ops;
  ops.isa = isa;
  scalar::fill_gemm(ops);
  scalar::fill_gemm_bf16(ops);
  scalar::fill_rows(ops);
  scalar::fill_attention(ops);
  scalar::fill_logits(ops);
  scalar::fill_states(ops);
  if (isa >= Isa::kAvx2) {
    avx2::fill_gemm(ops);
    if (cpu_features().fetch_in_order) avx2::fill_gemm_in_order(ops);
    avx2::fill_rows(ops);
    avx2::fill_attention(ops);
    avx2::fill_logits(ops);
    avx2::fill_states(ops);
  }
  if (isa >= Isa::kAvx512) {
    avx512::fill_gemm(ops);
    if (cpu_features().fetch_in_order) avx512::fill_gemm_in_order(ops);
    if (cpu_features().four_pipes) avx512::fill_gemm_four_pipes(ops);
    avx512::fill_rows(ops);
    avx512::fill_attention(ops);
    avx512::fill_logits(ops);
    avx512::fill_states(ops);
  }
  ops.attend_prompt = ops.attend;
  if (isa >= Isa::kAvx512 && cpu_features().fast_bf16) avx512bf16::fill_attention(ops);
  if (isa >= Isa::kAmx) {
    amx::fill_attention(ops);
    amx::fill_gemm(ops);
    amx::fill_gemm_bf16(ops);
  }
  return ops;
}

template <Isa kIsa>
const Ops& filled() {
  static const Ops ops = fill(kIsa);
  return ops;
}

// What callers get.
template <Isa kIsa>
const Ops& table() {
#ifdef NDEBUG
  return filled<kIsa>();
#else
  static const Ops ops = checked_ops<filled<kIsa> >();
  return ops;
#endif
}

}  // namespace

bool isa_available(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return cpu_features().avx2;
    case Isa::kAvx512:
      return cpu_features().avx512;
    case Isa::kAmx:
      return cpu_features().amx;
  }
  return false;
}

Isa detect_isa() {
  Isa best = Isa::kScalar;
  for (const Isa isa : kIsas)
    if (isa_available(isa)) best = isa;
  return best;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "?";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : kIsas)
    if (name == isa_name(isa)) return isa;
  return std::nullopt;
}

Result<Isa> choose_isa(std::optional<Isa> forced) {
  if (!forced) {
    const char* named = std::getenv("WEIR_ISA");
    if (named == nullptr || *named == '\0') return detect_isa();
    forced = parse_isa(named);
    if (!forced)
      return fail(ErrorCode::kConfig, "WEIR_ISA: expected scalar, avx2, avx512 or amx, found \"" +
                                          std::string(named) + "\"");
  }
  if (!isa_available(*forced))
    return fail(ErrorCode::kConfig, "isa " + std::string(isa_name(*forced)) +
                                        " asked for, but this machine (" + processor_name() +
                                        ") has at most " + std::string(isa_name(detect_isa())));
  return *forced;
}

const Ops& ops_for(Isa isa) {
  CHECK(isa_available(isa));
  switch (isa) {
    case Isa::kScalar:
      return table<Isa::kScalar>();
    case Isa::kAvx2:
      return table<Isa::kAvx2>();
    case Isa::kAvx512:
      return table<Isa::kAvx512>();
    case Isa::kAmx:
      break;
  }
  return table<Isa::kAmx>();
}

std::string processor_name() { return cpu_features().name; }

}  // namespace weir::kernels
