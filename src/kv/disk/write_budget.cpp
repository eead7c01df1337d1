#include "kv/disk/write_budget.h"

#include <algorithm>
#include <numeric>

namespace weir::kv::disk {

// What was written before counts as written in this hour: it is forgotten a day from now.
WriteBudget::WriteBudget(int64_t bytes_a_second, int64_t bytes_a_day, int64_t written,
                         Clock::time_point now)
    : bytes_a_second_(bytes_a_second), bytes_a_day_(bytes_a_day), hour_(now), next_(now) {
  hours_[0] = written;
}

bool WriteBudget::allows(int64_t bytes, Clock::time_point now) {
  advance(now);
  return std::accumulate(hours_.begin(), hours_.end(), bytes) <= bytes_a_day_;
}

WriteBudget::Clock::time_point WriteBudget::spend(int64_t bytes, Clock::time_point now) {
  advance(now);
  hours_[0] += bytes;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_a_second_);
  next_ = std::max(next_, now) +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  return next_;
}

void WriteBudget::advance(Clock::time_point now) {
  for (int32_t i = 0; i < kHours && now - hour_ >= std::chrono::hours(1); ++i) {
    std::shift_right(hours_.begin(), hours_.end(), 1);
    hours_[0] = 0;
    hour_ += std::chrono::hours(1);
  }
  if (now - hour_ >= std::chrono::hours(1)) hour_ = now;  // Nothing for a day.
}

}  // namespace weir::kv::disk
