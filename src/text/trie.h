// Trie: the longest of many strings that begins at a place, or all of them, without hashing.
//
// Threads: immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::text {

class Trie {
 public:
  Trie() { root_.fill(kNone); }
  // Strings with their values (>= 0). Empty strings are left out; of equal strings the first wins.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> strings);

  bool empty() const { return nodes_.empty(); }
  // Whether a string begins with this byte.
  bool begins(uint8_t byte) const { return root_[byte] != kNone; }

  // Calls found(length, value) for each string that `text` begins with, shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found&& found) const {
    if (text.empty()) return;
    uint32_t node = root_[static_cast<uint8_t>(text[0])];
    for (size_t i = 1; node != kNone; ++i) {
      if (nodes_[node].value >= 0) found(i, nodes_[node].value);
      if (i == text.size()) return;
      node = child(node, static_cast<uint8_t>(text[i]));
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    uint32_t children = 0;  // Index of the first; they are side by side, sorted by label.
    uint16_t child_count = 0;
    uint8_t label = 0;  // The byte that leads here.
    int32_t value = -1;
  };

  uint32_t child(uint32_t parent, uint8_t label) const {
    const Node& node = nodes_[parent];
    uint32_t low = node.children, high = node.children + node.child_count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (nodes_[middle].label < label) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < node.children + node.child_count && nodes_[low].label == label ? low : kNone;
  }

  std::array<uint32_t, 256> root_;
  std::vector<Node> nodes_;
};

}  // namespace weir::text
