// How fast experts come from a disk: through the read queue, beside what the disk gives to a bare
// loop in the same seconds, in every way that reads can be made.
//
//   ssd_bench FILE [ROUNDS [WINDOW_MIB]]
//
// FILE: a GiB at least, on the disk in question; best random bytes, larger than the host's memory
// for it. Checks first that every way gives the same bytes, then times. Goals: four experts in
// flight get 95 % of the bare loop's rate (G1); at most 12 ms of the process's CPU a GB, 20 with
// the kernel's threads and interrupts (G2); with speculation on, of 100 demand reads 99 take at
// most three times the median (G16).
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/huge_pages.h"
#include "ssd/calibration.h"
#include "ssd/disk.h"
#include "ssd/read_queue.h"

namespace {

using namespace weir;
using namespace weir::ssd;
using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;

constexpr uint32_t kMiB = 1 << 20;
constexpr Nanoseconds kStretch = 500ms;
// An expert of 1.5 MiB in two parts, as the store reads it: gate and up, then down.
constexpr std::array<uint32_t, 2> kPartBytes = {kMiB, kMiB / 2};
constexpr uint32_t kExpertBytes = kPartBytes[0] + kPartBytes[1];
constexpr size_t kPlaces = 64;  // Of experts in memory.

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}
double median(const std::vector<double>& values) { return quantile(values, 0.5); }

// CPU seconds since the start: of this process, and of the machine's block and interrupt work.
struct Cpu {
  double process = 0;
  double kernel = 0;

  // Looking through /proc costs milliseconds of our own: outside of what is measured.
  static Cpu begin() {
    const double kernel = kernel_seconds();
    return {process_seconds(), kernel};
  }
  static Cpu end() {
    const double process = process_seconds();
    return {process, kernel_seconds()};
  }

  static double process_seconds() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    double sum = 0;
    for (const timeval& t : {use.ru_utime, use.ru_stime})
      sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    return sum;
  }

  // Interrupts of all processors, and the time of the workers that are kblockd's just now.
  static double kernel_seconds() {
    double ticks = 0;
    std::ifstream stat("/proc/stat");
    std::string name;
    double user, nice, system, idle, wait, irq = 0, softirq = 0;
    stat >> name >> user >> nice >> system >> idle >> wait >> irq >> softirq;
    ticks += irq + softirq;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      std::ifstream file(entry.path() / "stat");
      std::string line;
      if (!std::getline(file, line) || line.find("kblockd") == std::string::npos) continue;
      std::istringstream rest(line.substr(line.rfind(')') + 1));
      std::string skipped;
      for (int i = 0; i < 11; ++i) rest >> skipped;
      double utime = 0, stime = 0;
      rest >> utime >> stime;
      ticks += utime + stime;
    }
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
};

struct Way {
  const char* name;
  bool uring;
  bool direct;
};
constexpr Way kWays[] = {{"io_uring, O_DIRECT", true, true},
                         {"pread x 4, O_DIRECT", false, true},
                         {"io_uring, buffered", true, false},
                         {"pread x 4, buffered", false, false}};

struct Figures {
  std::vector<double> rate;        // GB/s.
  std::vector<double> process_ms;  // CPU a GB.
  std::vector<double> kernel_ms;
};

// One way to read the file, with memory of its own.
class Bench {
 public:
  Bench(const std::string& path, const Way& way) : memory_(memory()) {
    DiskOptions options;
    options.uring = way.uring;
    options.direct = way.direct;
    disk_ = std::move(Disk::create(options).value());
    const auto file = disk_->open_file(path);
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().message.c_str());
      std::exit(1);
    }
    blocks_ = (disk_->file_state(0).bytes - kExpertBytes) / kBlockBytes;
  }

  Disk& disk() { return *disk_; }
  std::byte* place(size_t index) { return memory_.data() + index % kPlaces * kExpertBytes; }
  uint64_t random_offset() { return random_() % blocks_ * kBlockBytes; }

  // A bare loop: `reads` of 1 MiB in flight. GB/s.
  double bare(int32_t reads) {
    std::array<DiskDone, 64> done;
    for (int32_t i = 0; i < reads; ++i) submit(static_cast<uint64_t>(i));
    disk_->flush();
    const Nanoseconds begin = disk_->now();
    double bytes = 0, rate = 0;
    int32_t in_flight = reads;
    while (in_flight > 0) {
      const int32_t count = disk_->wait(done, 10s);
      CHECK(count > 0);
      const Nanoseconds now = disk_->now();
      bytes += static_cast<double>(count) * kMiB;
      if (now - begin >= kStretch && rate == 0) rate = bytes / seconds(now - begin) / 1e9;
      for (int32_t i = 0; i < count; ++i) {
        CHECK(done[static_cast<size_t>(i)].result == static_cast<int32_t>(kMiB));
        if (rate == 0)
          submit(done[static_cast<size_t>(i)].tag);
        else
          --in_flight;
      }
      disk_->flush();
    }
    return rate;
  }

  // Demand reads of whole experts through the queue, always `experts` of them outstanding. GB/s.
  double queued(int32_t experts, const QueueLimits& limits) {
    ReadQueue queue(*disk_, limits);
    std::vector<int> parts(kPlaces);
    for (int32_t i = 0; i < experts; ++i) add(queue, static_cast<size_t>(i));
    const Nanoseconds begin = disk_->now();
    double bytes = 0, rate = 0;
    while (rate == 0 || queue.in_flight() > 0) {
      for (const Landed& one : queue.wait(10s)) {
        CHECK(!one.failure);
        const size_t expert = one.owner / 2;
        bytes += kPartBytes[one.owner % 2];
        if (++parts[expert] < 2) continue;
        parts[expert] = 0;
        if (rate == 0) add(queue, expert);
      }
      const Nanoseconds now = disk_->now();
      if (now - begin >= kStretch && rate == 0) rate = bytes / seconds(now - begin) / 1e9;
    }
    return rate;
  }

  // Bursts as a layer makes them: so many experts at once, then nothing until all have landed.
  // GB/s.
  double bursts(int32_t experts, const QueueLimits& limits) {
    ReadQueue queue(*disk_, limits);
    const Nanoseconds begin = disk_->now();
    double bytes = 0;
    Nanoseconds now = begin;
    while (now - begin < kStretch) {
      for (int32_t i = 0; i < experts; ++i) add(queue, static_cast<size_t>(i));
      while (queue.demand_outstanding()) CHECK(!queue.wait(10s).empty());
      bytes += static_cast<double>(experts) * kExpertBytes;
      now = disk_->now();
    }
    return bytes / seconds(now - begin) / 1e9;
  }

  // A decode loop: a layer computes for 300 us, then misses two experts (of 1.5 MiB, in two parts).
  // Milliseconds from asking for a part to its landing; speculation always has something to read.
  std::vector<double> layer_latencies(bool speculate, const QueueLimits& limits) {
    ReadQueue queue(*disk_, limits);
    std::array<Nanoseconds, 2 * kPlaces> asked{};
    std::vector<double> latencies;
    constexpr uint64_t kSpeculated = 1 << 20;
    const Nanoseconds end = disk_->now() + 2 * kStretch;
    const auto take = [&](std::span<const Landed> landed) {
      for (const Landed& one : landed) {
        CHECK(!one.failure);
        if (one.owner < kSpeculated)
          latencies.push_back(seconds(disk_->now() - asked[one.owner]) * 1e3);
      }
    };
    while (disk_->now() < end) {
      const Nanoseconds computed = disk_->now() + 300us;
      while (speculate && queue.queued(ReadClass::kSpeculative) < 4) {
        const size_t expert = kPlaces / 2 + random_() % (kPlaces / 2);
        CHECK(queue.add({0, random_offset(), kMiB, kMiB, place(expert)}, ReadClass::kSpeculative,
                        kSpeculated + expert));
      }
      take(queue.poll());
      std::this_thread::sleep_for(std::max(Nanoseconds(0), computed - disk_->now()));
      for (size_t expert = 0; expert < 2; ++expert) {
        add(queue, expert);
        asked[2 * expert] = asked[2 * expert + 1] = disk_->now();
      }
      while (queue.demand_outstanding()) take(queue.wait(10s));
    }
    while (queue.in_flight() > 0 || queue.queued(ReadClass::kSpeculative) > 0)
      take(queue.wait(10s));
    return latencies;
  }

 private:
  static HugeBuffer memory() {
    HugeBuffer buffer = std::move(HugeBuffer::allocate(kPlaces * kExpertBytes).value());
    std::memset(buffer.data(), 1, buffer.bytes());
    return buffer;
  }
  void submit(uint64_t tag) { CHECK(disk_->submit({0, kMiB, random_offset(), place(tag), tag})); }
  void add(ReadQueue& queue, size_t expert) {
    uint64_t offset = random_offset();
    std::byte* to = place(expert);
    for (size_t part = 0; part < 2; ++part) {
      const uint32_t bytes = kPartBytes[part];
      CHECK(queue.add({0, offset, bytes, bytes, to}, ReadClass::kDemand, 2 * expert + part));
      offset += bytes;
      to += bytes;
    }
  }

  HugeBuffer memory_;
  std::unique_ptr<Disk> disk_;
  uint64_t blocks_ = 0;
  std::mt19937_64 random_{1};
};

// What the page cache has of the file would flatter the buffered ways, which leave nothing behind.
void drop_from_page_cache(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fdatasync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

// Every way reads the same bytes from the same place.
void check_bytes(std::vector<std::unique_ptr<Bench>>& benches) {
  for (int i = 0; i < 8; ++i) {
    const uint64_t offset = benches[0]->random_offset();
    for (auto& bench : benches) {
      CHECK(bench->disk().submit({0, kMiB, offset, bench->place(0), 0}));
      std::array<DiskDone, 1> done;
      CHECK(bench->disk().wait(done, 10s) == 1 && done[0].result == static_cast<int32_t>(kMiB));
      CHECK(std::memcmp(bench->place(0), benches[0]->place(0), kMiB) == 0);
    }
  }
}

void compare_ways(std::vector<std::unique_ptr<Bench>>& benches, const QueueLimits& limits,
                  int rounds) {
  std::vector<Figures> figures(benches.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < benches.size(); ++i) {
      const Cpu before = Cpu::begin();
      const Nanoseconds begin = benches[i]->disk().now();
      const double rate = benches[i]->queued(8, limits);
      const double gigabytes = rate * seconds(benches[i]->disk().now() - begin);
      const Cpu after = Cpu::end();
      figures[i].rate.push_back(rate);
      figures[i].process_ms.push_back((after.process - before.process) * 1e3 / gigabytes);
      figures[i].kernel_ms.push_back((after.kernel - before.kernel) * 1e3 / gigabytes);
    }
  }
  std::printf("\n8 experts of 1.5 MiB outstanding, window %llu MiB, %d rounds\n",
              static_cast<unsigned long long>(limits.demand_window_bytes / kMiB), rounds);
  std::printf("| way | GB/s | process CPU ms/GB | kblockd + irq of the machine ms/GB |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (size_t i = 0; i < benches.size(); ++i) {
    std::printf("| %s | %.2f [%.2f, %.2f] | %.1f | %.1f |\n",
                std::string(benches[i]->disk().mode()).c_str(), median(figures[i].rate),
                quantile(figures[i].rate, 0), quantile(figures[i].rate, 1),
                median(figures[i].process_ms), median(figures[i].kernel_ms));
  }
}

void compare_bursts(Bench& bench, const QueueLimits& limits, int rounds) {
  struct Row {
    const char* name;
    int32_t experts;
    bool burst;
    std::vector<double> share;
  };
  std::vector<Row> rows;
  for (const int32_t experts : {2, 4, 8}) {
    rows.push_back({"always outstanding", experts, false, {}});
    rows.push_back({"bursts", experts, true, {}});
  }
  std::vector<double> plateaus;
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) {  // The bare loop just before and just after.
      const double before = bench.bare(16);
      const double rate =
          row.burst ? bench.bursts(row.experts, limits) : bench.queued(row.experts, limits);
      const double after = bench.bare(16);
      row.share.push_back(rate / ((before + after) / 2));
      plateaus.push_back(before);
    }
  }
  std::printf(
      "\nDemand through the queue, share of a bare loop's 16 x 1 MiB in flight: %.2f GB/s\n",
      median(plateaus));
  std::printf(
      "| experts | how | share, median of pairs [quartiles] | goal |\n| --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    std::printf("| %d | %s | %.0f %% [%.0f, %.0f] | %s |\n", row.experts, row.name,
                100 * median(row.share), 100 * quantile(row.share, 0.25),
                100 * quantile(row.share, 0.75), row.experts >= 4 && !row.burst ? "95 %" : "");
  }
}

void compare_latencies(Bench& bench, const QueueLimits& limits, int rounds) {
  std::array<std::vector<double>, 2> latencies;
  for (int round = 0; round < rounds; ++round) {
    for (size_t on = 0; on < 2; ++on) {
      const auto some = bench.layer_latencies(on == 1, limits);
      latencies[on].insert(latencies[on].end(), some.begin(), some.end());
    }
  }
  std::printf("\nA layer's four demand reads after 300 us of computing\n");
  std::printf("| speculation | reads | p50 ms | p99 ms | p99 / p50 | goal |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (size_t on = 0; on < 2; ++on) {
    const double p50 = median(latencies[on]), p99 = quantile(latencies[on], 0.99);
    std::printf("| %s | %zu | %.2f | %.2f | %.1f | %s |\n", on ? "on" : "off", latencies[on].size(),
                p50, p99, p99 / p50, on ? "3" : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ssd_bench FILE [ROUNDS [WINDOW_MIB]]\n");
    return 2;
  }
  const std::string path = argv[1];
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  const auto calibration = calibrate(path);
  if (!calibration) {
    std::fprintf(stderr, "%s\n", calibration.error().message.c_str());
    return 1;
  }
  std::printf("calibration %s", to_json(*calibration).c_str());
  QueueLimits limits = limits_for(*calibration);
  if (argc > 3)
    limits.demand_window_bytes = std::max<uint64_t>(1, std::strtoull(argv[3], nullptr, 10)) * kMiB;

  std::vector<std::unique_ptr<Bench>> benches;
  for (const Way& way : kWays) benches.push_back(std::make_unique<Bench>(path, way));
  check_bytes(benches);
  drop_from_page_cache(path);
  compare_ways(benches, limits, rounds);
  compare_bursts(*benches[0], limits, rounds);
  compare_latencies(*benches[0], limits, rounds);
  return 0;
}
