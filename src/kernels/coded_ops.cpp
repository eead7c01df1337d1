#include "kernels/coded_ops.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/checked_ops.h"
#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

CodedOps fill(Isa isa) {
  CodedOps ops;
  scalar::fill_coded(ops);
  if (isa >= Isa::kAvx2) {
    avx2::fill_coded(ops);
    avx2::fill_coded_attention(ops);
  }
  if (isa >= Isa::kAvx512) {
    avx512::fill_coded(ops);
    avx512::fill_coded_attention(ops);
  }
  ops.attend_prompt = ops.attend;
  if (isa >= Isa::kAvx512 && cpu_features().fast_bf16) avx512bf16::fill_coded_attention(ops);
  // Generated tokens take AVX-512's: at the few rows that share a page tiles are not full.
  if (isa >= Isa::kAmx) amx::fill_coded_attention(ops);
  return ops;
}

// An ISA's attention, and before it the rows that see no codes.
template <Isa kIsa, auto kOfCodes, auto kOfNumbers>
void attend(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
            const AttendArgs& args) {
  static const auto of_codes = fill(kIsa).*kOfCodes;
  static const auto of_numbers = ops_for(kIsa).*kOfNumbers;
  const int32_t early = std::clamp(kFirstToSeeCodes - args.first_position, 0, args.rows);
  if (early > 0) {
    AttendArgs numbers = args;
    numbers.rows = early;
    numbers.pages = hot_pages;
    of_numbers(hot, numbers);
  }
  if (early == args.rows) return;
  AttendArgs rest = args;
  rest.rows -= early;
  rest.first_position += early;
  rest.q += early * args.q_stride;
  rest.out += early * args.out_stride;
  of_codes(coded, hot, hot_pages, rest);
}

template <Isa kIsa>
const CodedOps& filled() {
  static const CodedOps ops = [] {
    CodedOps all = fill(kIsa);
    all.attend = attend<kIsa, &CodedOps::attend, &Ops::attend>;
    all.attend_prompt = attend<kIsa, &CodedOps::attend_prompt, &Ops::attend_prompt>;
    return all;
  }();
  return ops;
}

// Checks what coded_ops.h REQUIRES before each call.
template <auto kInner>
CodedOps checked() {
  CodedOps ops{};
  const auto check = [&ops]<auto kEntry, auto kRequirement>() {
    using Signature = std::remove_reference_t<decltype(ops.*kEntry)>;
    ops.*kEntry = CheckedEntry<kInner, kEntry, kRequirement, Signature>::call;
  };
  check.template operator()<&CodedOps::rotate, requirements::rotate>();
  check.template operator()<&CodedOps::encode_page, requirements::encode_page>();
  check.template operator()<&CodedOps::attend, requirements::attend_coded>();
  check.template operator()<&CodedOps::attend_prompt, requirements::attend_coded>();
  return ops;
}

// What callers get.
template <Isa kIsa>
const CodedOps& table() {
#ifdef NDEBUG
  return filled<kIsa>();
#else
  static const CodedOps ops = checked<filled<kIsa> >();
  return ops;
#endif
}

}  // namespace

const CodedOps& coded_ops_for(Isa isa) {
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

}  // namespace weir::kernels
