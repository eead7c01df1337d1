// TokenTrie: a vocabulary as a trie of bytes, laid out in the order of a depth-first walk, so that
// all tokens that an automaton allows are found in one pass over an array. Beside it, for classes
// of characters of which most tokens consist, the set of those tokens and the trie of the others.
// And of every larger subtree, of which characters its texts consist.
//
// Threads: immutable; one per vocabulary, shared by everybody.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/char_runs.h"

namespace weir::grammar {

enum class LeadingSpace : uint8_t { kNone, kMaybe, kAlways };

class TokenTrie {
 public:
  struct Node {
    int32_t token = -1;  // That ends here, or -1.
    uint32_t end = 0;    // The first node after this one's subtree; of a bush, its number.
    uint16_t depth = 0;  // Bytes up to here: 1 at the top.
    uint8_t byte = 0;
    bool is_bush = false;
  };
  // A subtree of some size that begins with a character: what its texts are made of, so that all of
  // them may be allowed at once.
  struct Bush {
    uint32_t end = 0;  // As a node's.
    uint32_t tokens_begin = 0, tokens_end = 0;
    uint16_t length_max = 0;          // In characters.
    uint8_t char_class = kNoClass;    // The narrowest that has all of them.
    bool wide = false;                // Some are not ASCII,
    std::array<uint64_t, 2> ascii{};  // and these are.

    static constexpr uint8_t kNoClass = kCharClasses;
  };
  // Tokens of whole characters first, and only they have bushes; then, as if it were another trie,
  // the others: parts of characters, and line ends above ASCII.
  struct Forest {
    std::vector<Node> nodes;
    std::vector<Bush> bushes;
    std::vector<int32_t> tokens;  // Of the first part, in the order of their nodes.
    size_t others = 0;            // The first node of the second part.

    size_t end_of(const Node& node) const { return node.is_bush ? bushes[node.end].end : node.end; }
    size_t memory_bytes() const;
  };
  // Tokens of at most `length_max` characters (kEndlessRun: any number), all of one class, and as
  // `space` says a single space before them.
  struct Slice {
    CharClass char_class = CharClass::kText;
    uint8_t length_max = kEndlessRun;
    LeadingSpace space = LeadingSpace::kNone;
    size_t count = 0;
    std::vector<uint64_t> tokens;  // Bits by token.
    Forest rest;                   // All other tokens.
  };

  // Longer tokens are never allowed: none that is worth anything.
  static constexpr size_t kTokenBytesMax = 1024;

  // By token id its bytes; empty: never allowed (special tokens, holes).
  explicit TokenTrie(std::span<const std::string_view> pieces);

  int32_t vocab_size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  std::string_view bytes(int32_t token) const;
  size_t mask_words() const { return (static_cast<size_t>(vocab_size()) + 63) / 64; }
  // The longest token in bytes.
  size_t depth_max() const { return depth_max_; }

  const Forest& all() const { return all_; }
  // The largest first.
  std::span<const Slice> slices() const { return slices_; }
  // Tokens with the same bytes as another one, which alone is in the trie: that one, this one.
  std::span<const std::pair<int32_t, int32_t>> twins() const { return twins_; }

  size_t memory_bytes() const;

 private:
  // REQUIRES: sorted by bytes.
  Forest build(std::span<const int32_t> tokens) const;
  void add_nodes(std::span<const int32_t> tokens, std::vector<Node>& nodes) const;

  std::string bytes_;
  std::vector<uint32_t> offsets_;
  Forest all_;
  std::vector<Slice> slices_;
  std::vector<std::pair<int32_t, int32_t>> twins_;
  size_t depth_max_ = 0;
};

}  // namespace weir::grammar
