// TextIndex: a text of tokens in which one finds where the last few tokens of a text, this one or
// another, stand. It keeps the last kTokensMax tokens at most.
//
// The place of each token is chained to the last one before it that ends with the same kKey tokens
// (by their hash), so that adding a token costs the same in a text of any length, and looking one
// up never more than kLooks places: below a microsecond.
//
// Threads: one writer; any number of readers while nothing is added. append() does not allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace weir::sched {

class TextIndex {
 public:
  static constexpr int32_t kTokensMax = 1 << 16;
  static constexpr int32_t kKey = 3;      // Fewer equal tokens say nothing of what follows.
  static constexpr int32_t kLooks = 16;
  static constexpr int32_t kTailMax = 32;  // Longer matches count as this long.

  // In place of a token: a row of a picture, which no answer repeats.
  static constexpr int32_t kNoToken = -1;

  // For so many tokens.
  explicit TextIndex(int64_t tokens);
  static size_t memory_bytes(int64_t tokens);

  // There is nothing in it.
  void clear();
  void append(int32_t token);
  // Asks for the memory that the next token will be added to, and then for that where this token
  // will be looked up, so that it is there when append() and find() come.
  void fetch_end() const;
  void fetch_key(int32_t next) const;
  void append(std::span<const int32_t> tokens) {
    for (const int32_t token : tokens) append(token);
  }

  // How many were added, and the first that is still there.
  int32_t size() const { return size_; }
  int32_t begin() const { return size_ > capacity_ ? size_ - capacity_ : 0; }
  // REQUIRES: begin() <= position < size().
  int32_t operator[](int32_t position) const { return tokens_[at(position)]; }
  // Its last tokens, at most kTailMax.
  struct Tail {
    std::array<int32_t, kTailMax> tokens;
    int32_t count = 0;
    std::span<const int32_t> all() const { return std::span(tokens).first(static_cast<size_t>(count)); }
  };
  Tail tail() const;

  // Where the last tokens of `tail` stand and something follows: [end - length, end) of this text
  // equals the last `length` of them. The longest, and of equals the last one; length 0: nowhere.
  struct Match {
    int32_t end = 0;
    int32_t length = 0;
  };
  Match find(std::span<const int32_t> tail) const;
  // How many of the last tokens of `tail` stand before `end`.
  int32_t length_at(int32_t end, std::span<const int32_t> tail) const;

 private:
  static int32_t capacity_for(int64_t tokens);
  size_t at(int32_t position) const { return static_cast<size_t>(position & (capacity_ - 1)); }
  size_t head_of(int32_t a, int32_t b, int32_t c) const;

  const int32_t capacity_;  // A power of two.
  const std::unique_ptr<int32_t[]> tokens_;
  const std::unique_ptr<int32_t[]> previous_;  // By place: that of the same key, + 1; 0: none.
  const std::unique_ptr<int32_t[]> heads_;     // By hash of a key: its last place, + 1.
  int32_t size_ = 0;
};

}  // namespace weir::sched
