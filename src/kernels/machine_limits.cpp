#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/huge_pages.h"
#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"
#include "kernels/isa.h"

namespace weir::kernels {
namespace {

// Larger than the caches of most machines together.
constexpr int64_t kReadBytesMin = int64_t{256} << 20;
// Each thread's part is a multiple of a page, and so of what a loop reads at once.
constexpr int64_t kPartBytes = 4096;
constexpr int kCpusMax = 4096;
constexpr int kLoopRepeats = 12;
// About a millisecond: the clock call does not matter, an interruption spoils one repeat of many.
constexpr int64_t kIterations = 300'000;

PeakLoops loops_for(Isa isa) {
  PeakLoops loops{};
  scalar::fill_peaks(loops);
  if (isa >= Isa::kAvx2) avx2::fill_peaks(loops);
  if (isa >= Isa::kAvx512) avx512::fill_peaks(loops);
  if (isa >= Isa::kAvx512 && cpu_features().fast_bf16) avx512bf16::fill_peaks(loops);
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

// A number from a file of /sys, or -1.
int64_t read_number(const std::string& path) {
  long long number = -1;
  if (std::FILE* file = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(file, "%lld", &number) != 1) number = -1;
    std::fclose(file);
  }
  return number;
}

// All last-level caches together: a machine may have one for every few cores.
int64_t last_level_bytes() {
  std::map<int64_t, int64_t> bytes_by_id;
  for (int cpu = 0; cpu < kCpusMax; ++cpu) {
    const std::string cache =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index3/";
    const int64_t kib = read_number(cache + "size");  // "32768K".
    if (kib > 0) bytes_by_id[read_number(cache + "id")] = kib << 10;
  }
  int64_t bytes = 0;
  for (const auto& [id, one] : bytes_by_id) bytes += one;
  return bytes;
}

// `part` is this thread's share of the memory, which it is the first to touch.
MachineLimits measure_thread(const PeakLoops& loops, std::span<std::byte> part,
                             std::atomic<int>& arrived, int threads) {
  MachineLimits limits;
  std::memset(part.data(), 1, part.size());
  const auto bytes = static_cast<int64_t>(part.size());
  uint64_t seen = 0;
  int meetings = 0;
  const auto together = [&] { meet(arrived, ++meetings * threads); };
  const auto read_rate = [&](auto read) {
    together();
    return 1e-9 * best_rate(kLoopRepeats, [&] {
             seen += read(part.data(), bytes);
             return static_cast<double>(bytes);
           });
  };
  PeakLoops plain{};
  scalar::fill_peaks(plain);
  limits.plain_read_gb_s = read_rate(plain.read);
  limits.read_gb_s = std::max(limits.plain_read_gb_s, read_rate(loops.read));
  CHECK(seen != 0);
  together();
  limits.int8_tops =
      1e-12 * best_rate(kLoopRepeats, [&] { return static_cast<double>(loops.int8(kIterations)); });
  together();
  limits.f32_tflops =
      1e-12 * best_rate(kLoopRepeats, [&] { return static_cast<double>(loops.f32(kIterations)); });
  if (loops.bf16 == nullptr) return limits;
  together();
  limits.bf16_tflops =
      1e-12 * best_rate(kLoopRepeats, [&] { return static_cast<double>(loops.bf16(kIterations)); });
  return limits;
}

}  // namespace

int64_t read_bytes() {
  static const int64_t bytes = std::max(kReadBytesMin, 4 * last_level_bytes());
  return bytes;
}

Result<MachineLimits> measure_limits(Isa isa, int threads) {
  CHECK(isa_available(isa) && threads >= 1);
  const int64_t part = std::max<int64_t>(read_bytes() / threads / kPartBytes, 1) * kPartBytes;
  WEIR_ASSIGN(const HugeBuffer memory, HugeBuffer::allocate(static_cast<size_t>(part * threads)));
  const auto part_of = [&](size_t thread) {
    return std::span(memory.data() + static_cast<int64_t>(thread) * part,
                     static_cast<size_t>(part));
  };
  const PeakLoops loops = loops_for(isa);
  std::atomic<int> arrived{0};
  std::vector<MachineLimits> each(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (size_t i = 1; i < each.size(); ++i)
    others.emplace_back([&, i] { each[i] = measure_thread(loops, part_of(i), arrived, threads); });
  each[0] = measure_thread(loops, part_of(0), arrived, threads);
  for (std::thread& other : others) other.join();
  MachineLimits sum;
  for (const MachineLimits& one : each) {
    sum.read_gb_s += one.read_gb_s;
    sum.plain_read_gb_s += one.plain_read_gb_s;
    sum.int8_tops += one.int8_tops;
    sum.f32_tflops += one.f32_tflops;
    sum.bf16_tflops += one.bf16_tflops;
  }
  return sum;
}

}  // namespace weir::kernels
