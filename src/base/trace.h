// Trace: what each thread did when, as spans in a ring per thread, written as Chrome trace events
// (JSON) for Perfetto or chrome://tracing. Not a profiler: a span is a phase of a step, not a
// function.
//
// Threads: a thread records into its own lane, from attach() to detach() or its end: no lock, no
// allocation, two reads of the clock and one store of 32 bytes a span. One that is not attached
// pays one branch. lanes() and write() need all of them to be at rest.
//
// Invariants:
// (1) Spans of a lane nest: the destructors of Scopes see to it.
// (2) A lane keeps its latest `spans_max` spans; older ones are overwritten.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace weir::trace {

// What a span's time goes to; the category in the file.
enum class Kind : uint8_t {
  kKernel,   // Arithmetic on a batch: what a step is for.
  kWait,     // For other members, or for work.
  kEngine,   // Publishing, reading the inbox, planning.
  kNetwork,  // Tokens to text, text to the socket.
  kWhole,    // Encloses spans of the other kinds.
};
std::string_view kind_name(Kind kind);

struct Span {
  const char* name = nullptr;
  int64_t begin = 0;  // Ticks.
  int64_t end = 0;
  int32_t rows = 0;  // Of a step's batch; elsewhere 0.
  Kind kind = Kind::kWhole;
};

// From the order of their ends, in which they are recorded, to that of their begins; which one
// encloses another comes before it.
void sort_by_begin(std::vector<Span>& spans);

// The processor's counter of constant rate, half as dear to read as the system's clock; elsewhere
// nanoseconds. Recorder relates it to time.
inline int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__builtin_ia32_rdtsc());
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

// One thread's spans.
class Lane {
 public:
  // REQUIRES: spans_max is a power of two.
  Lane(std::string thread, size_t spans_max);

  void record(const Span& span) { spans_[count_++ & mask_] = span; }

  const std::string& thread() const { return thread_; }
  // The spans kept, in the order in which they ended.
  std::vector<Span> spans() const;

 private:
  const std::string thread_;
  const size_t mask_;
  std::vector<Span> spans_;
  size_t count_ = 0;
};

// Where this thread records, if it does. Constant-initialised: reading it is one load.
inline thread_local constinit Lane* this_lane = nullptr;

// Records its lifetime as a span.
class Scope {
 public:
  // `name` is a literal.
  Scope(Kind kind, const char* name, int32_t rows = 0)
      : lane_(this_lane), name_(name), rows_(rows), kind_(kind) {
    if (lane_ != nullptr) [[unlikely]]
      begin_ = ticks();
  }
  ~Scope() {
    if (lane_ != nullptr) [[unlikely]]
      lane_->record({name_, begin_, ticks(), rows_, kind_});
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Lane* const lane_;
  const char* const name_;
  const int32_t rows_;
  const Kind kind_;
  int64_t begin_ = 0;
};

class Recorder {
 public:
  // 2^18 spans of 32 bytes are 8 MiB a thread, and two to four seconds of decode at batch 1 of a
  // model of 30 layers.
  static constexpr size_t kSpansMax = size_t{1} << 18;

  explicit Recorder(size_t spans_max = kSpansMax);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // The calling thread records here from now on. It ends, or detaches, before the recorder dies.
  void attach(std::string thread);
  static void detach() { this_lane = nullptr; }

  // In the order of attach().
  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  double seconds(int64_t ticks_between) const;

  // All lanes as one JSON file.
  Result<void> write(const std::string& path) const;
  std::string json() const;

 private:
  using Clock = std::chrono::steady_clock;

  const size_t spans_max_;
  const int64_t begin_ticks_;
  const Clock::time_point begin_;
  std::mutex mutex_;  // Of lanes_, while threads attach.
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace weir::trace
