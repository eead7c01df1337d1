#include "base/metrics.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace weir {

namespace {

void append(std::string& out, double value) {
  char buffer[32];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  if (help.empty()) return;  // Further samples of a metric that has its head already.
  out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  out.append(name).append(" ").append(type).append("\n");
}

void sample(std::string& out, std::string_view name, std::string_view suffix,
            std::string_view labels, std::string_view more, double value) {
  out.append(name).append(suffix);
  if (!labels.empty() || !more.empty()) {
    out.append("{").append(labels);
    if (!labels.empty() && !more.empty()) out.append(",");
    out.append(more).append("}");
  }
  out.append(" ");
  append(out, value);
  out.append("\n");
}

}  // namespace

double Histogram::upper_bound(int bucket) {
  static constexpr double kSteps[3] = {1.0, 2.2, 4.7};
  return 1e-4 * std::pow(10.0, bucket / 3) * kSteps[bucket % 3];
}

void Histogram::observe(double seconds) {
  static const std::array<double, kBuckets> kBounds = [] {
    std::array<double, kBuckets> bounds{};
    for (int i = 0; i < kBuckets; ++i) bounds[static_cast<size_t>(i)] = upper_bound(i);
    return bounds;
  }();
  size_t bucket = 0;
  while (bucket < kBuckets && seconds > kBounds[bucket]) ++bucket;
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(static_cast<uint64_t>(std::max(0.0, seconds) * 1e9), std::memory_order_relaxed);
}

uint64_t Histogram::cumulative(int bucket) const {
  uint64_t total = 0;
  for (int i = 0; i <= bucket; ++i)
    total += counts_[static_cast<size_t>(i)].load(std::memory_order_relaxed);
  return total;
}

uint64_t Histogram::count() const { return cumulative(kBuckets); }

double Histogram::sum() const {
  return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9;
}

void render(std::string& out, std::string_view name, std::string_view help, const Counter& counter,
            std::string_view labels) {
  head(out, name, help, "counter");
  sample(out, name, "", labels, "", static_cast<double>(counter.value()));
}

void render(std::string& out, std::string_view name, std::string_view help, const Gauge& gauge,
            std::string_view labels) {
  head(out, name, help, "gauge");
  sample(out, name, "", labels, "", gauge.value());
}

void render(std::string& out, std::string_view name, std::string_view help,
            const Histogram& histogram, std::string_view labels, double unit) {
  head(out, name, help, "histogram");
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    char bound[32];
    std::snprintf(bound, sizeof bound, "le=\"%g\"", unit * Histogram::upper_bound(i));
    sample(out, name, "_bucket", labels, bound, static_cast<double>(histogram.cumulative(i)));
  }
  const double count = static_cast<double>(histogram.count());
  sample(out, name, "_bucket", labels, "le=\"+Inf\"", count);
  sample(out, name, "_sum", labels, "", unit * histogram.sum());
  sample(out, name, "_count", labels, "", count);
}

}  // namespace weir
