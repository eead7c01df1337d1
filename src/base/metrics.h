// Counters, gauges and histograms, and their Prometheus text.
//
// Threads: values are relaxed atomics, updated by anybody without a lock or an allocation. Metrics
// are members of a Metrics object that is built before any thread starts; render() may run at any
// time and sees each value as it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir {

class Counter {
 public:
  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void set(double v) { value_.store(v, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Counts seconds, in buckets from 100 us to 100 s, or counts, from 1 to 1,000,000; three a decade.
class Histogram {
 public:
  enum class Scale : uint8_t { kSeconds, kCounts };
  static constexpr int kBuckets = 19;

  Histogram() = default;
  explicit Histogram(Scale scale) : scale_(scale) {}

  double upper_bound(int bucket) const;  // The last bucket has no bound.
  void observe(double value);
  uint64_t count() const;
  double sum() const;
  uint64_t cumulative(int bucket) const;  // Observations at or below upper_bound(bucket).

 private:
  std::array<std::atomic<uint64_t>, kBuckets + 1> counts_{};
  std::atomic<uint64_t> sum_{0};  // Of nanoseconds, or of counts.
  const Scale scale_ = Scale::kSeconds;
};

enum class MetricType : uint8_t { kCounter, kGauge };

// `key="value"` with the value escaped as the format has it; of several, joined by commas, a metric
// is told from others of its name.
std::string metric_label(std::string_view key, std::string_view value);

// Appends one metric in Prometheus text format 0.0.4. `labels` is `key="value",...` or empty;
// `help` is empty for all samples of a metric but the first, and they stand together.
void render(std::string& out, std::string_view name, std::string_view help, MetricType type,
            double value, std::string_view labels = {});
void render(std::string& out, std::string_view name, std::string_view help, const Counter& counter,
            std::string_view labels = {});
void render(std::string& out, std::string_view name, std::string_view help, const Gauge& gauge,
            std::string_view labels = {});
// `unit`: what a second is in the unit shown: 1000 for milliseconds.
void render(std::string& out, std::string_view name, std::string_view help,
            const Histogram& histogram, std::string_view labels = {}, double unit = 1);

}  // namespace weir
