#include "grammar/utf8_edges.h"

#include <algorithm>

namespace weir::grammar {

namespace {

// Characters of one length in bytes (Unicode 15, table 3-6). CharSet holds no surrogates.
struct Length {
  char32_t first, last;
  char32_t lead;  // Of the first byte.
  int rest;       // Continuation bytes.
};
constexpr Length kLengths[] = {
    {0x0, 0x7f, 0x00, 0},
    {0x80, 0x7ff, 0xc0, 1},
    {0x800, 0xffff, 0xe0, 2},
    {0x10000, 0x10ffff, 0xf0, 3},
};

}  // namespace

void Utf8Edges::add(const CharSet& set, int32_t from) {
  for (const CharRange& range : set.ranges()) {
    for (const Length& length : kLengths) {
      const char32_t first = std::max(range.first, length.first);
      const char32_t last = std::min(range.last, length.last);
      if (first <= last) add_values(from, length.lead, first, last, length.rest);
    }
  }
}

int32_t Utf8Edges::tail(int count) {
  for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
    if (tails_[i] >= 0) continue;
    tails_[i] = nfa_.add_state();
    nfa_.add_symbols(tails_[i], tails_[i - 1], 0x80, 0xbf);
  }
  return tails_[static_cast<size_t>(count)];
}

void Utf8Edges::add_values(int32_t state, char32_t base, char32_t first, char32_t last, int rest) {
  const int shift = 6 * rest;
  const char32_t mask = (char32_t{1} << shift) - 1;
  char32_t low = first >> shift, end = (last >> shift) + 1;  // Bytes whose rest is free.
  const auto partial = [&](char32_t value, char32_t rest_first, char32_t rest_last) {
    const int32_t next = nfa_.add_state();
    const auto byte = static_cast<uint16_t>(base + value);
    nfa_.add_symbols(state, next, byte, byte);
    add_values(next, 0x80, rest_first, rest_last, rest - 1);
  };
  const bool cut_first = (first & mask) != 0, cut_last = (last & mask) != mask;
  if (low + 1 == end && (cut_first || cut_last)) {
    partial(low, first & mask, last & mask);
    return;
  }
  if (cut_first) partial(low++, first & mask, mask);
  if (cut_last) partial(--end, 0, last & mask);
  if (low < end)
    nfa_.add_symbols(state, tail(rest), static_cast<uint16_t>(base + low),
                     static_cast<uint16_t>(base + end - 1));
}

}  // namespace weir::grammar
