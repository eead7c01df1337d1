#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/isa.h"

namespace weir::kernels {
namespace {

// Larger than any cache that one core can hope to have for itself.
constexpr int64_t kReadBytes = int64_t{256} << 20;
constexpr int kLoopRepeats = 12;
// About a millisecond: the clock call does not matter, an interruption spoils one repeat of many.
constexpr int64_t kIterations = 300'000;

PeakLoops loops_for(Isa isa) {
  PeakLoops loops{};
  scalar::fill_peaks(loops);
  if (isa >= Isa::kAvx2) avx2::fill_peaks(loops);
  if (isa >= Isa::kAvx512) avx512::fill_peaks(loops);
  if (isa >= Isa::kAmx) amx::fill_peaks(loops);
  return loops;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best rate of `repeats` runs, in units a second; `run` returns the units done.
template <class Run>
double best_rate(int repeats, Run&& run) {
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const double begin = thread_seconds();
    const double units = run();
    best = std::max(best, units / (thread_seconds() - begin));
  }
  return best;
}

// Threads start each measurement together: one alone would see a faster machine.
void meet(std::atomic<int>& arrived, int everybody) {
  arrived.fetch_add(1);
  while (arrived.load() < everybody) std::this_thread::yield();
}

MachineLimits measure_thread(const PeakLoops& loops, std::atomic<int>& arrived, int threads) {
  MachineLimits limits;
  auto memory = HugeBuffer::allocate(static_cast<size_t>(kReadBytes));
  CHECK(memory.has_value());
  std::memset(memory->data(), 1, memory->bytes());
  uint64_t seen = 0;
  meet(arrived, threads);
  limits.read_gb_s = 1e-9 * best_rate(kLoopRepeats, [&] {
                       seen += loops.read(memory->data(), kReadBytes);
                       return static_cast<double>(kReadBytes);
                     });
  CHECK(seen != 0);
  meet(arrived, 2 * threads);
  limits.int8_tops =
      1e-12 * best_rate(kLoopRepeats, [&] { return static_cast<double>(loops.int8(kIterations)); });
  meet(arrived, 3 * threads);
  limits.f32_tflops =
      1e-12 * best_rate(kLoopRepeats, [&] { return static_cast<double>(loops.f32(kIterations)); });
  return limits;
}

}  // namespace

MachineLimits measure_limits(Isa isa, int threads) {
  CHECK(isa_available(isa) && threads >= 1);
  const PeakLoops loops = loops_for(isa);
  std::atomic<int> arrived{0};
  std::vector<MachineLimits> each(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (size_t i = 1; i < each.size(); ++i)
    others.emplace_back([&, i] { each[i] = measure_thread(loops, arrived, threads); });
  each[0] = measure_thread(loops, arrived, threads);
  for (std::thread& other : others) other.join();
  MachineLimits sum;
  for (const MachineLimits& one : each) {
    sum.read_gb_s += one.read_gb_s;
    sum.int8_tops += one.int8_tops;
    sum.f32_tflops += one.f32_tflops;
  }
  return sum;
}

}  // namespace weir::kernels
