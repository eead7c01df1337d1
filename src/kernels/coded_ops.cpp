#include "kernels/coded_ops.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/checked_ops.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

// AMX takes AVX-512's: at the few rows that share a page its tiles are not full.
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
  return ops;
}

// An ISA's attention, and before it the rows that see no codes.
template <Isa kIsa>
void attend(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
            const AttendArgs& args) {
  struct Ways {
    decltype(CodedOps::attend) codes;
    decltype(Ops::attend) numbers;
  };
  static const Ways ways = {fill(kIsa).attend, ops_for(kIsa).attend};
  const int32_t early = std::clamp(kFirstToSeeCodes - args.first_position, 0, args.rows);
  if (early > 0) {
    AttendArgs of_numbers = args;
    of_numbers.rows = early;
    of_numbers.pages = hot_pages;
    ways.numbers(hot, of_numbers);
  }
  if (early == args.rows) return;
  AttendArgs rest = args;
  rest.rows -= early;
  rest.first_position += early;
  rest.q += early * args.q_stride;
  rest.out += early * args.out_stride;
  ways.codes(coded, hot, hot_pages, rest);
}

template <Isa kIsa>
const CodedOps& filled() {
  static const CodedOps ops = [] {
    CodedOps all = fill(kIsa);
    all.attend = attend<kIsa>;
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
    case Isa::kAmx:
      break;
  }
  return table<Isa::kAvx512>();
}

}  // namespace weir::kernels
