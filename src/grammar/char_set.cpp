#include "grammar/char_set.h"

#include <algorithm>

namespace weir::grammar {

namespace {

constexpr char32_t kLargest = 0x10ffff;
constexpr char32_t kSurrogateFirst = 0xd800, kSurrogateLast = 0xdfff;

}  // namespace

CharSet::CharSet(std::initializer_list<CharRange> ranges) : ranges_(ranges) { normalise(); }

CharSet CharSet::all() { return CharSet{{0, kLargest}}; }

void CharSet::add(char32_t first, char32_t last) {
  ranges_.push_back({first, std::min(last, kLargest)});
  normalise();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalise();
}

void CharSet::normalise() {
  std::vector<CharRange> cut;
  for (const CharRange& range : ranges_) {
    if (range.first > range.last) continue;
    if (range.last < kSurrogateFirst || range.first > kSurrogateLast) {
      cut.push_back(range);
      continue;
    }
    if (range.first < kSurrogateFirst) cut.push_back({range.first, kSurrogateFirst - 1});
    if (range.last > kSurrogateLast) cut.push_back({kSurrogateLast + 1, range.last});
  }
  std::ranges::sort(cut, {}, &CharRange::first);
  ranges_.clear();
  for (const CharRange& range : cut) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

CharSet CharSet::negated() const {
  CharSet result;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.first > next) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLargest) result.ranges_.push_back({next, kLargest});
  result.normalise();
  return result;
}

CharSet CharSet::minus(const CharSet& other) const {
  CharSet kept = negated();
  kept.add(other);
  return kept.negated();
}

bool CharSet::contains(char32_t c) const {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, &CharRange::first);
  return after != ranges_.begin() && std::prev(after)->last >= c;
}

}  // namespace weir::grammar
