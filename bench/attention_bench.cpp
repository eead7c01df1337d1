// attention_bench: checks attention of an ISA against the scalar reference, then times it on one
// thread: decode as the rate at which it reads keys and values, beside the plain read of the same
// run; prefill as arithmetic (4 dims operations a visible token and query), beside the FMA peak;
// decode from latents (DeepSeek's shape: keys of 576 numbers, of which 512 are the value) as both.
//
// Before that the formats of compressed keys and values beside f16, in time of the processor,
// medians: of decode, in caches and beyond them; of prefill; and of making codes of a page.
//
//   attention_bench [--formats] [--isa NAME]     --formats: compressed keys and values only
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/huge_pages.h"
#include "kernels/coded_layout.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "kernels/ops.h"
#include "kernels/rotation.h"
#include "thread_bench.h"

namespace weir::kernels {
namespace {

// Keys and values of all sequences of a run: more than the caches hold.
constexpr int64_t kMemoryBytes = int64_t{192} << 20;

struct Dims {
  int32_t key = 0;
  int32_t value = 0;
  bool values_in_keys = false;

  int64_t page_bytes() const {
    return int64_t{key + (values_in_keys ? 0 : value)} * kPageTokens * 2;
  }
  // Of one query head and one token that it sees.
  double operations() const { return 2.0 * (key + value); }
};

Dims equal(int32_t dims) { return {.key = dims, .value = dims}; }

// One KV head of f16 pages, and queries to put to it.
struct Bed {
  Bed(const Dims& head_dims, int32_t query_group, int32_t rows, int32_t page_count, bool shuffled)
      : dims(head_dims),
        group(query_group),
        memory(buffer(head_dims.page_bytes() * page_count)),
        scratch(buffer(kScratchBytes)) {
    kv.base = reinterpret_cast<uint8_t*>(memory.data());
    kv.kv_heads = 1;
    kv.k_dim = dims.key;
    kv.v_dim = dims.value;
    kv.values_in_keys = dims.values_in_keys;
    kv.head_bytes = kv.page_bytes = dims.page_bytes();
    std::mt19937 random(1);
    std::normal_distribution<float> value(0, 1);
    q.resize(static_cast<size_t>(rows * group * dims.key));
    out.resize(static_cast<size_t>(rows * group * dims.value));
    for (float& x : q) x = value(random);
    std::vector<float> k(static_cast<size_t>(dims.key) * 64);
    for (float& x : k) x = value(random);
    const Ops& ops = ops_for(Isa::kScalar);
    for (int32_t page = 0; page < page_count; ++page)
      for (int32_t slot = 0; slot < kPageTokens; ++slot) {
        ops.store_keys(kv, page, slot, 0, 1, k.data() + (page + slot) % 60 * dims.key);
        if (!dims.values_in_keys)
          ops.store_values(kv, page, slot, 0, 1, k.data() + (page * 7 + slot) % 61 * dims.value);
      }
    pages.resize(static_cast<size_t>(page_count));
    std::iota(pages.begin(), pages.end(), 0);
    if (shuffled) std::shuffle(pages.begin(), pages.end(), random);
  }
  AttendArgs args(int32_t rows, int32_t first_position, size_t first_page) {
    AttendArgs a;
    a.q = q.data();
    a.q_stride = int64_t{group} * dims.key;
    a.out_stride = int64_t{group} * dims.value;
    a.out = out.data();
    a.rows = rows;
    a.first_position = first_position;
    a.pages = pages.data() + first_page;
    a.group = group;
    a.scale = 1 / std::sqrt(static_cast<float>(dims.key));
    a.scratch = scratch.data();
    return a;
  }

  Dims dims;
  int32_t group;
  HugeBuffer memory, scratch;
  KvPages kv;
  std::vector<float> q, out;
  std::vector<int32_t> pages;
};

// Stops the program if `ops` and scalar differ by more than rounding.
void check_against_scalar(decltype(Ops::attend) attend, Bed& bed, int32_t rows,
                          int32_t first_position, float tolerance = 1e-5f) {
  const AttendArgs args = bed.args(rows, first_position, 0);
  attend(bed.kv, args);
  const std::vector<float> got = bed.out;
  ops_for(Isa::kScalar).attend(bed.kv, args);
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - bed.out[i]) <= tolerance)) {
      std::fprintf(stderr, "attention differs from scalar at %zu: %g, expected %g\n", i, got[i],
                   bed.out[i]);
      std::exit(1);
    }
}

// Seconds of one decode step of each of `sequences` sequences.
double decode_seconds(const Ops& ops, Bed& bed, int32_t tokens, int32_t sequences) {
  check_against_scalar(ops.attend, bed, 1, std::min(tokens, 300) - 1);
  return best_seconds([&] {
    for (int32_t s = 0; s < sequences; ++s)
      ops.attend(bed.kv, bed.args(1, tokens - 1, static_cast<size_t>(s * (tokens / kPageTokens))));
  });
}

void decode(const Ops& ops, const Dims& dims, int32_t group, int32_t tokens, bool shuffled,
            const MachineLimits& limits) {
  const int64_t bytes = dims.page_bytes() * (tokens / kPageTokens);
  const auto sequences = static_cast<int32_t>(kMemoryBytes / bytes);
  Bed bed(dims, group, 1, sequences * (tokens / kPageTokens), shuffled);
  const double seconds = decode_seconds(ops, bed, tokens, sequences);
  const double gb_s = static_cast<double>(bytes * sequences) / seconds / 1e9;
  std::printf("decode   d=%-3d group=%-3d context %5d pages %s  %6.1f GB/s  %3.0f %% of read",
              dims.key, group, tokens, shuffled ? "random  " : "in order", gb_s,
              100 * gb_s / limits.read_gb_s);
  if (dims.values_in_keys) {
    const double tflops = dims.operations() * group * tokens * sequences / seconds / 1e12;
    std::printf("  %6.3f TFLOPS  %3.0f %% of FMA peak", tflops, 100 * tflops / limits.f32_tflops);
  }
  std::printf("\n");
}

// In the calls that a model makes: kCallRows rows at a time.
void prefill(const Ops& ops, int32_t dims, int32_t group, int32_t first, int32_t rows,
             const MachineLimits& limits) {
  constexpr int32_t kCallRows = 32;
  const bool bf16 = ops.attend_prompt != ops.attend;
  Bed bed(equal(dims), group, rows, (first + rows) / kPageTokens, false);
  check_against_scalar(ops.attend_prompt, bed, rows, 0, bf16 ? 2e-2f : 1e-5f);
  const double seconds = best_seconds([&] {
    for (int32_t row = 0; row < rows; row += kCallRows) {
      AttendArgs args = bed.args(kCallRows, first + row, 0);
      args.q += row * args.q_stride;
      args.out += row * args.out_stride;
      ops.attend_prompt(bed.kv, args);
    }
  });
  const double visible = rows * (first + 0.5 * (rows + 1)) * group;
  const double tflops = visible * bed.dims.operations() / seconds / 1e12;
  const double peak = bf16 ? limits.bf16_tflops : limits.f32_tflops;
  std::printf(
      "prefill  d=%-3d group=%d rows %d at %5d          %8.3f TFLOPS  %3.0f %% of %s peak\n", dims,
      group, rows, first, tflops, 100 * tflops / peak, bf16 ? "bf16" : "FMA");
}

// --- Compressed keys and values.

struct Coding {
  const char* name;
  int32_t k_bits, v_bits;
};
constexpr Coding kCodings[] = {{"int8", 8, 8}, {"tq4", 4, 4}, {"tq3", 4, 3}};

// The pages of a bed as codes, all of them.
struct CodedBed {
  CodedBed(const Ops& ops, Bed& bed, const Coding& coding) : rotation(bed.dims.key) {
    pages = {.kv_heads = 1,
             .k_dim = bed.dims.key,
             .v_dim = bed.dims.value,
             .k_bits = coding.k_bits,
             .v_bits = coding.v_bits,
             .k_rotation = rotation.view(),
             .v_rotation = rotation.view()};
    pages.page_bytes = pages.head_bytes = coded_head_bytes(pages);
    const auto count = static_cast<int32_t>(bed.pages.size());
    memory = buffer(pages.page_bytes * count);
    pages.base = reinterpret_cast<uint8_t*>(memory.data());
    const CodedOps& codes = coded_ops_for(ops.isa);
    const int32_t made = std::min(count, 64);
    for (int32_t page = 0; page < made; ++page)
      codes.encode_page(pages, page, bed.kv, page, 0, bed.scratch.data());
    for (int32_t page = made; page < count; ++page)
      std::memcpy(pages.base + page * pages.page_bytes, pages.base + page % made * pages.page_bytes,
                  static_cast<size_t>(pages.page_bytes));
  }

  HeadRotation rotation;
  HugeBuffer memory;
  CodedPages pages;
};

// The median of 15 runs, of at least a few milliseconds each, for one call.
template <class F>
double median_seconds(F&& fn) {
  int calls = 1;
  for (double took = 0; took < 3e-3; calls *= 2) {
    const double begin = thread_seconds();
    for (int i = 0; i < calls; ++i) fn();
    took = thread_seconds() - begin;
  }
  std::vector<double> times;
  for (int run = 0; run < 15; ++run) {
    const double begin = thread_seconds();
    for (int i = 0; i < calls; ++i) fn();
    times.push_back((thread_seconds() - begin) / calls);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void decode_formats(const Ops& ops, int32_t dims, int32_t group, int32_t tokens, bool in_caches) {
  const Dims head = equal(dims);
  const int32_t pages = (tokens + kPageTokens - 1) / kPageTokens;
  const int64_t bytes = head.page_bytes() * pages;
  const auto sequences = in_caches ? 1 : static_cast<int32_t>(kMemoryBytes / bytes);
  Bed bed(head, group, 1, sequences * pages, false);
  const auto each = [&](auto&& attend) {
    return median_seconds([&] {
             for (int32_t s = 0; s < sequences; ++s)
               attend(bed.args(1, tokens - 1, static_cast<size_t>(s * pages)));
           }) /
           sequences;
  };
  const double plain = each([&](const AttendArgs& args) { ops.attend(bed.kv, args); });
  std::printf("decode   d=%-3d group=%d context %5d %-9s f16 %8.2f us", dims, group, tokens,
              in_caches ? "in caches" : "", plain * 1e6);
  for (const Coding& coding : kCodings) {
    const CodedBed coded(ops, bed, coding);
    const double time = each([&](const AttendArgs& args) {
      coded_ops_for(ops.isa).attend(coded.pages, bed.kv, args.pages, args);
    });
    std::printf("  %s %8.2f us %5.2fx", coding.name, time * 1e6, plain / time);
  }
  std::printf("\n");
}

void prefill_formats(const Ops& ops, int32_t dims, int32_t group, int32_t first) {
  constexpr int32_t kRows = 32;
  Bed bed(equal(dims), group, kRows, first / kPageTokens + 1, false);
  const AttendArgs args = bed.args(kRows, first, 0);
  const bool late = first >= ops.attend_prompt_from;
  const auto numbers = late ? ops.attend_prompt : ops.attend;
  const CodedOps& ops_of_codes = coded_ops_for(ops.isa);
  const auto codes = late ? ops_of_codes.attend_prompt : ops_of_codes.attend;
  const double plain = median_seconds([&] { numbers(bed.kv, args); });
  std::printf("prefill  d=%-3d group=%d %d rows at %5d     f16 %8.2f us", dims, group, kRows, first,
              plain * 1e6);
  for (const Coding& coding : kCodings) {
    const CodedBed coded(ops, bed, coding);
    const double time = median_seconds([&] { codes(coded.pages, bed.kv, args.pages, args); });
    const double encode = median_seconds([&] {
      ops_of_codes.encode_page(coded.pages, 0, bed.kv, 0, 0, bed.scratch.data());
    });
    std::printf("  %s %8.2f us %5.2fx (codes of a page %.2f us)", coding.name, time * 1e6,
                plain / time, encode * 1e6);
  }
  std::printf("\n");
}

// Of SmolLM2-135M's heads and of Qwen3-0.6B's.
void run_formats(const Ops& ops) {
  for (const auto& [dims, group] : {std::pair{64, 3}, {128, 2}, {128, 8}}) {
    for (const int32_t tokens : {33, 64, 65, 96, 128, 192, 256, 512, 4096})
      decode_formats(ops, dims, group, tokens, true);
    for (const int32_t tokens : {4096, 32768}) decode_formats(ops, dims, group, tokens, false);
    for (const int32_t first : {0, 512, 4096}) prefill_formats(ops, dims, group, first);
  }
}

void run(const Ops& ops, const MachineLimits& limits) {
  run_formats(ops);
  for (const int32_t dims : {64, 128})
    for (const int32_t group : {1, 3, 4, 8})
      for (const bool shuffled : {false, true})
        decode(ops, equal(dims), group, 2048, shuffled, limits);
  for (const int32_t heads : {16, 128})
    decode(ops, {.key = 576, .value = 512, .values_in_keys = true}, heads, 2048, true, limits);
  for (const int32_t dims : {64, 128})
    for (const int32_t first : {0, 4096}) prefill(ops, dims, 3, first, 512, limits);
}

}  // namespace
}  // namespace weir::kernels

int main(int argc, char** argv) {
  using weir::kernels::run_for_isa;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (argc > 1 && std::strcmp(argv[1], "--formats") == 0)
    return run_for_isa(argc - 1, argv + 1, [](const auto& ops, const auto&) {
      weir::kernels::run_formats(ops);
    });
  return run_for_isa(argc, argv, weir::kernels::run);
}
