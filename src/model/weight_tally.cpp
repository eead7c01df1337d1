#include "model/weight_tally.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::model {

int64_t WeightTally::numbers() const {
  int64_t total = of_vectors_;
  for (const auto& [name, numbers] : of_format_) total += numbers;
  return total;
}

std::string WeightTally::formats() const {
  std::vector<std::pair<int64_t, std::string>> by_size;
  int64_t total = 0;
  for (const auto& [name, numbers] : of_format_) {
    by_size.emplace_back(numbers, name);
    total += numbers;
  }
  std::sort(by_size.rbegin(), by_size.rend());
  std::string text;
  for (const auto& [numbers, name] : by_size) {
    if (!text.empty()) text += ", ";
    text += name;
    const int64_t percent = (200 * numbers + total) / (2 * total);
    if (by_size.size() == 1) continue;
    text += percent == 0 ? std::string(" <1") : std::to_string(percent).insert(0, 1, ' ');
    text += " %";
  }
  return text;
}

}  // namespace weir::model
