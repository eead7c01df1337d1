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

using Bounds = std::array<double, Histogram::kBuckets>;

const Bounds& bounds(Histogram::Scale scale) {
  const auto make = [](double first, const std::array<double, 3>& steps) {
    Bounds made{};
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = first * std::pow(10.0, static_cast<double>(i / 3)) * steps[i % 3];
    return made;
  };
  static const Bounds kSeconds = make(1e-4, {1.0, 2.2, 4.7}), kCounts = make(1, {1.0, 2.0, 5.0});
  return scale == Histogram::Scale::kSeconds ? kSeconds : kCounts;
}

// What the sum counts in, by one of the scale.
double parts(Histogram::Scale scale) { return scale == Histogram::Scale::kSeconds ? 1e9 : 1; }

}  // namespace

double Histogram::upper_bound(int bucket) const {
  return bounds(scale_)[static_cast<size_t>(bucket)];
}

void Histogram::observe(double value) {
  const Bounds& upper = bounds(scale_);
  size_t bucket = 0;
  while (bucket < kBuckets && value > upper[bucket]) ++bucket;
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(static_cast<uint64_t>(std::max(0.0, value) * parts(scale_)),
                 std::memory_order_relaxed);
}

uint64_t Histogram::cumulative(int bucket) const {
  uint64_t total = 0;
  for (int i = 0; i <= bucket; ++i)
    total += counts_[static_cast<size_t>(i)].load(std::memory_order_relaxed);
  return total;
}

uint64_t Histogram::count() const { return cumulative(kBuckets); }

double Histogram::sum() const {
  return static_cast<double>(sum_.load(std::memory_order_relaxed)) / parts(scale_);
}

std::string metric_label(std::string_view key, std::string_view value) {
  std::string out(key);
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

void render(std::string& out, std::string_view name, std::string_view help, MetricType type,
            double value, std::string_view labels) {
  head(out, name, help, type == MetricType::kCounter ? "counter" : "gauge");
  sample(out, name, "", labels, "", value);
}

void render(std::string& out, std::string_view name, std::string_view help, const Counter& counter,
            std::string_view labels) {
  render(out, name, help, MetricType::kCounter, static_cast<double>(counter.value()), labels);
}

void render(std::string& out, std::string_view name, std::string_view help, const Gauge& gauge,
            std::string_view labels) {
  render(out, name, help, MetricType::kGauge, gauge.value(), labels);
}

void render(std::string& out, std::string_view name, std::string_view help,
            const Histogram& histogram, std::string_view labels, double unit) {
  head(out, name, help, "histogram");
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    char bound[32];
    std::snprintf(bound, sizeof bound, "le=\"%g\"", unit * histogram.upper_bound(i));
    sample(out, name, "_bucket", labels, bound, static_cast<double>(histogram.cumulative(i)));
  }
  const double count = static_cast<double>(histogram.count());
  sample(out, name, "_bucket", labels, "le=\"+Inf\"", count);
  sample(out, name, "_sum", labels, "", unit * histogram.sum());
  sample(out, name, "_count", labels, "", count);
}

}  // namespace weir
