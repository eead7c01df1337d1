#include "hub/byte_ranges.h"

#include <algorithm>

namespace weir::hub {

uint64_t ByteRanges::bytes() const {
  uint64_t sum = 0;
  for (const ByteRange& range : ranges_) sum += range.bytes();
  return sum;
}

uint64_t ByteRanges::front() const {
  return ranges_.empty() || ranges_[0].begin > 0 ? 0 : ranges_[0].end;
}

std::vector<ByteRange> ByteRanges::gaps(uint64_t size) const {
  std::vector<ByteRange> gaps;
  uint64_t at = 0;
  for (const ByteRange& range : ranges_) {
    if (range.begin > at) gaps.push_back({at, range.begin});
    at = range.end;
  }
  if (at < size) gaps.push_back({at, size});
  return gaps;
}

void ByteRanges::add(ByteRange range) {
  if (range.begin >= range.end) return;
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &ByteRange::end);
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

}  // namespace weir::hub
