// CharSet: a set of Unicode scalar values as sorted ranges; what a character class stands for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace weir::grammar {

struct CharRange {
  char32_t first = 0;
  char32_t last = 0;
};

// Invariant: ranges are sorted, disjoint, not adjacent, and hold no surrogate.
class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges);

  static CharSet all();

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);

  CharSet negated() const;
  CharSet minus(const CharSet& other) const;

  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  std::span<const CharRange> ranges() const { return ranges_; }

 private:
  void normalise();

  std::vector<CharRange> ranges_;
};

}  // namespace weir::grammar
