#include "text/trie.h"

#include <algorithm>
#include <deque>

namespace weir::text {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> strings) {
  root_.fill(kNone);
  std::erase_if(strings, [](const auto& s) { return s.first.empty(); });
  std::stable_sort(strings.begin(), strings.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  strings.erase(std::unique(strings.begin(), strings.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                strings.end());

  // Breadth first: a node stands for the strings [begin, end) that share its `depth` bytes.
  struct Range {
    size_t begin = 0, end = 0, depth = 0;
    uint32_t node = kNone;  // kNone: the root, which has no node.
  };
  std::deque<Range> ranges = {{0, strings.size(), 0, kNone}};
  for (; !ranges.empty(); ranges.pop_front()) {
    const Range range = ranges.front();
    const auto first_child = static_cast<uint32_t>(nodes_.size());
    size_t i = range.begin;
    // Sorted: the one string that ends here, if any, comes first.
    if (range.node != kNone && i < range.end && strings[i].first.size() == range.depth) {
      nodes_[range.node].value = strings[i].second;
      ++i;
    }
    while (i < range.end) {
      const auto label = static_cast<uint8_t>(strings[i].first[range.depth]);
      size_t end = i + 1;
      while (end < range.end && static_cast<uint8_t>(strings[end].first[range.depth]) == label)
        ++end;
      const auto node = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.label = label});
      ranges.push_back({i, end, range.depth + 1, node});
      if (range.node == kNone) {
        root_[label] = node;
      } else {
        ++nodes_[range.node].child_count;
      }
      i = end;
    }
    if (range.node != kNone) nodes_[range.node].children = first_child;
  }
  nodes_.shrink_to_fit();
}

}  // namespace weir::text
