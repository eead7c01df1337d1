// GapHistogram: very many durations in little memory, to within 1 %.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace weir::load {

// The place, counted from 0, of the smallest of `count` sorted samples that at least `share` of
// them do not exceed. REQUIRES: count > 0.
inline uint64_t percentile_rank(double share, uint64_t count) {
  // 0.07 * 100 is 7.000000000000001, but the seventh is meant.
  const double place = std::ceil(share * static_cast<double>(count) - 1e-6) - 1;
  return std::min(static_cast<uint64_t>(std::max(place, 0.0)), count - 1);
}

class GapHistogram {
 public:
  void add(int64_t ns) {
    const double us = std::max(static_cast<double>(ns) / 1000, kFirstUs);
    const auto bucket = static_cast<size_t>(std::log(us / kFirstUs) / std::log(kStep));
    ++counts_[std::min(bucket, counts_.size() - 1)];
    ++count_;
    max_ns_ = std::max(max_ns_, ns);
  }

  void add(const GapHistogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    max_ns_ = std::max(max_ns_, other.max_ns_);
  }

  uint64_t count() const { return count_; }
  double max_ms() const { return static_cast<double>(max_ns_) / 1e6; }
  double percentile_ms(double share) const {
    if (count_ == 0) return 0;
    const uint64_t rank = percentile_rank(share, count_);
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank)
        return std::min(kFirstUs * std::pow(kStep, static_cast<double>(i) + 0.5) / 1000, max_ms());
    }
    return max_ms();
  }

 private:
  static constexpr double kFirstUs = 1;
  static constexpr double kStep = 1.02;  // The middle of a bucket is within 1 % of all in it.
  // ln(1e9) / ln(1.02) = 1046.5: from 1 us to 1,000 s.
  std::array<uint64_t, 1048> counts_{};
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
};

}  // namespace weir::load
