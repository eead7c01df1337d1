// LiteralMatch: which of a few texts comes next, byte by byte. None begins with another one.
//
// Threads: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace weir::api::output {

class LiteralMatch {
 public:
  static constexpr int kMore = -1, kNone = -2;

  // Empty texts never match.
  void expect(std::string_view a, std::string_view b = {}, std::string_view c = {}) {
    texts_ = {a, b, c};
    matched_ = 0;
    alive_ = {!a.empty(), !b.empty(), !c.empty()};
  }

  // The number of the text that ends with this byte, kMore, or kNone: then the byte is not taken.
  int push(char byte) {
    std::array<bool, 3> next{};
    int result = kNone;
    for (size_t i = 0; i < texts_.size(); ++i) {
      next[i] = alive_[i] && texts_[i][matched_] == byte;
      if (!next[i]) continue;
      result = kMore;
      if (matched_ + 1 == texts_[i].size()) return static_cast<int>(i);
    }
    if (result == kNone) return kNone;
    alive_ = next;
    ++matched_;
    return result;
  }

  // Nothing has been read yet: white space may come before.
  bool fresh() const { return matched_ == 0; }

 private:
  std::array<std::string_view, 3> texts_{};
  std::array<bool, 3> alive_{};
  size_t matched_ = 0;
};

inline bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace weir::api::output
