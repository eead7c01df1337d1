// What benches of one thread share. Time is the thread's own processor time, so that other
// processes on the core do not count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"

namespace weir {

inline double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The least of five runs.
template <class F>
double best_seconds(F&& work) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double begin = thread_seconds();
    work();
    best = std::min(best, thread_seconds() - begin);
  }
  return best;
}

inline HugeBuffer buffer(int64_t bytes) {
  auto memory = HugeBuffer::allocate(static_cast<size_t>(bytes));
  CHECK(memory.has_value());
  return std::move(*memory);
}

namespace kernels {

// main() of a bench of one ISA's kernels, `--isa NAME` or the best: prints the machine's limits and
// calls `bench(ops, limits)`. Returns the exit status.
template <class F>
int run_for_isa(int argc, char** argv, F&& bench) {
  std::optional<Isa> forced;
  if (argc == 3 && std::string_view(argv[1]) == "--isa") forced = parse_isa(argv[2]);
  if (argc != 1 && !forced) {
    std::fprintf(stderr, "usage: %s [--isa scalar|avx2|avx512|amx]\n", argv[0]);
    return 2;
  }
  const auto isa = choose_isa(forced);
  if (!isa) {
    std::fprintf(stderr, "%s\n", isa.error().message.c_str());
    return 1;
  }
  const auto limits = measure_limits(*isa, 1);
  if (!limits) {
    std::fprintf(stderr, "%s\n", limits.error().message.c_str());
    return 1;
  }
  std::printf("%s, %s, 1 thread: read %.1f GB/s, FMA %.3f TFLOPS\n", processor_name().c_str(),
              isa_name(*isa).data(), limits->read_gb_s, limits->f32_tflops);
  bench(ops_for(*isa), *limits);
  return 0;
}

}  // namespace kernels
}  // namespace weir
