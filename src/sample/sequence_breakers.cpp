#include "sample/sequence_breakers.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace weir::sample {

void SequenceBreakers::sort() {
  std::vector<std::vector<int32_t>> sorted = rests;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<uint32_t> places;
  for (const std::vector<int32_t>& rest : rests) {
    places.push_back(
        static_cast<uint32_t>(std::ranges::lower_bound(sorted, rest) - sorted.begin()));
    rest_max = std::max(rest_max, rest.size());
  }
  rests = std::move(sorted);
  for (Begun& each : begun) each.rest = places[each.rest];
  std::ranges::sort(begun);
  begun.erase(std::unique(begun.begin(), begun.end()), begun.end());
}

size_t SequenceBreakers::rest_length(std::span<const int32_t> tokens) const {
  auto found = std::ranges::equal_range(begun, tokens[0], {}, &Begun::token);
  size_t longest = 0;
  // What is left of `found` agrees on `length` tokens; of these rests the one that ends there, if
  // one does, is the first.
  for (size_t length = 0; !found.empty(); ++length) {
    if (rests[found.front().rest].size() == length) {
      longest = length;
      found.advance(1);
    }
    if (length + 1 == tokens.size()) break;
    found = std::ranges::equal_range(found, tokens[length + 1], {},
                                     [&](const Begun& each) { return rests[each.rest][length]; });
  }
  return longest;
}

std::optional<SequenceBreakers::Place> SequenceBreakers::find_last(
    std::span<const int32_t> tokens) const {
  for (size_t first = tokens.size(); first-- > 0;) {
    if (is_whole(tokens[first])) return Place{first, first};
    const size_t rest = rest_length(tokens.subspan(first));
    if (rest > 0) return Place{first, first + rest};
  }
  return std::nullopt;
}

std::optional<SequenceBreakers::Place> SequenceBreakers::find_next(
    std::span<const int32_t> tokens, std::optional<Place> known) const {
  const size_t last = tokens.size() - 1;
  if (is_whole(tokens[last])) return Place{last, last};
  // One that ends here; the shortest of them begins last. It may be the known one with a longer
  // rest, unless that is a token by itself.
  const size_t from = known ? known->first + (known->first == known->last ? 1 : 0) : 0;
  for (size_t length = 1; length <= std::min(rest_max, last - from); ++length) {
    const size_t first = last - length;
    if (rest_length(tokens.subspan(first)) == length) return Place{first, last};
  }
  return known;
}

}  // namespace weir::sample
