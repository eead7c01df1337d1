#include "grammar/token_trie.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace weir::grammar {

namespace {

// Near the end of a bounded text the set of the longest tokens does not apply any more; smaller
// steps than these gain little.
struct SliceKind {
  CharClass char_class;
  uint8_t length_max;
  LeadingSpace space;
};
constexpr SliceKind kSlices[] = {
    {CharClass::kText, kEndlessRun, LeadingSpace::kNone},
    {CharClass::kText, 12, LeadingSpace::kNone},
    {CharClass::kText, 6, LeadingSpace::kNone},
    {CharClass::kWord, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kWord, kEndlessRun, LeadingSpace::kNone},
    {CharClass::kLetter, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kLower, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kLower, kEndlessRun, LeadingSpace::kNone},
};

// How many characters, if all are of the class.
std::optional<size_t> run_length(std::string_view text, CharClass char_class) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x80) {
      if (!in_class(char_class, byte)) return std::nullopt;
      ++i;
      continue;
    }
    if (utf8_front(text.substr(i)).kind != Utf8Front::Kind::kValid) return std::nullopt;
    if (!in_class(char_class, decode_utf8(text, i))) return std::nullopt;
  }
  return count;
}

// Whole characters, none of which is a line end above ASCII.
bool is_plain_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    if (utf8_front(text.substr(i)).kind != Utf8Front::Kind::kValid) return false;
    if (!in_class(CharClass::kText, decode_utf8(text, i))) return false;
  }
  return true;
}

// Smaller subtrees are walked as fast as they are judged.
constexpr size_t kBushNodesMin = 6;

// Marks the bushes of a forest of plain texts.
class BushFinder {
 public:
  explicit BushFinder(TokenTrie::Forest& forest) : forest_(forest), kinds_(forest.nodes.size()) {}

  void run() {
    std::vector<TokenTrie::Node>& nodes = forest_.nodes;
    for (size_t i = nodes.size(); i-- > 0;) judge(i);  // What is below a node stands after it.
    std::vector<uint32_t> tokens_before(nodes.size() + 1, 0);
    for (size_t i = 0; i < nodes.size(); ++i)
      tokens_before[i + 1] = tokens_before[i] + (nodes[i].token >= 0);
    for (size_t i = 0; i < nodes.size(); ++i) {
      TokenTrie::Node& node = nodes[i];
      if (node.end - i < kBushNodesMin || continues_character(node.byte)) continue;
      const Kind& kind = kinds_[i];
      forest_.bushes.push_back({.end = node.end,
                                .tokens_begin = tokens_before[i],
                                .tokens_end = tokens_before[node.end],
                                .length_max = kind.length_max,
                                .char_class = narrowest(kind.classes),
                                .wide = kind.wide,
                                .ascii = kind.ascii});
      node.is_bush = true;
      node.end = static_cast<uint32_t>(forest_.bushes.size() - 1);
    }
  }

 private:
  // What a node and those below it have.
  struct Kind {
    std::array<uint64_t, 2> ascii{};
    bool wide = false;
    uint8_t classes = (1u << kCharClasses) - 1;  // Bits: those that have all.
    uint16_t length_max = 0;
  };

  static bool continues_character(uint8_t byte) { return (byte & 0xc0) == 0x80; }

  static uint8_t narrowest(uint8_t classes) {
    for (uint8_t c = kCharClasses; c-- > 0;)
      if (classes >> c & 1) return c;
    return TokenTrie::Bush::kNoClass;
  }

  void judge(size_t at) {
    const TokenTrie::Node& node = forest_.nodes[at];
    Kind kind;
    for (size_t below = at + 1; below < node.end; below = forest_.nodes[below].end) {
      const Kind& k = kinds_[below];
      for (size_t i = 0; i < 2; ++i) kind.ascii[i] |= k.ascii[i];
      kind.wide = kind.wide || k.wide;
      kind.classes &= k.classes;
      kind.length_max = std::max(kind.length_max, k.length_max);
    }
    const bool ascii = node.byte < 0x80;
    if (ascii) kind.ascii[node.byte / 64] |= uint64_t{1} << (node.byte % 64);
    kind.wide = kind.wide || !ascii;
    for (size_t c = 0; c < kCharClasses; ++c) {
      const auto char_class = static_cast<CharClass>(c);
      const bool in = ascii ? in_class(char_class, node.byte) : char_class == CharClass::kText;
      if (!in) kind.classes &= static_cast<uint8_t>(~(1u << c));
    }
    if (!continues_character(node.byte)) ++kind.length_max;
    kinds_[at] = kind;
  }

  TokenTrie::Forest& forest_;
  std::vector<Kind> kinds_;
};

}  // namespace

TokenTrie::TokenTrie(std::span<const std::string_view> pieces) {
  std::vector<int32_t> sorted;
  offsets_.reserve(pieces.size() + 1);
  offsets_.push_back(0);
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces[id].size() <= kTokenBytesMax ? pieces[id] : "";
    bytes_ += piece;
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    depth_max_ = std::max(depth_max_, piece.size());
    if (!piece.empty()) sorted.push_back(static_cast<int32_t>(id));
  }
  std::ranges::stable_sort(sorted, {}, [&](int32_t token) { return bytes(token); });
  size_t kept = 0;
  for (const int32_t token : sorted) {
    if (kept > 0 && bytes(sorted[kept - 1]) == bytes(token))
      twins_.emplace_back(sorted[kept - 1], token);
    else
      sorted[kept++] = token;
  }
  sorted.resize(kept);
  all_ = build(sorted);
  for (const SliceKind& kind : kSlices) {
    Slice slice;
    slice.char_class = kind.char_class;
    slice.length_max = kind.length_max;
    slice.space = kind.space;
    slice.tokens.assign(mask_words(), 0);
    std::vector<int32_t> rest;
    for (const int32_t token : sorted) {
      std::string_view text = bytes(token);
      const bool space = text.size() > 1 && text[0] == ' ' && kind.space != LeadingSpace::kNone;
      if (space) text.remove_prefix(1);
      const std::optional<size_t> length = run_length(text, kind.char_class);
      if (length && (space || kind.space != LeadingSpace::kAlways) &&
          (kind.length_max == kEndlessRun || *length <= kind.length_max)) {
        slice.tokens[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
        ++slice.count;
      } else {
        rest.push_back(token);
      }
    }
    slice.rest = build(rest);
    slices_.push_back(std::move(slice));
  }
  std::ranges::stable_sort(slices_, std::greater<>(), &Slice::count);
}

std::string_view TokenTrie::bytes(int32_t token) const {
  if (token < 0 || token >= vocab_size()) return {};
  const uint32_t begin = offsets_[static_cast<size_t>(token)];
  return std::string_view(bytes_).substr(begin, offsets_[static_cast<size_t>(token) + 1] - begin);
}

void TokenTrie::add_nodes(std::span<const int32_t> tokens, std::vector<Node>& nodes) const {
  std::vector<size_t> path;  // Nodes of the last token's bytes.
  std::string_view last;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes[path.back()].end = static_cast<uint32_t>(nodes.size());
  };
  for (const int32_t token : tokens) {
    const std::string_view text = bytes(token);
    const auto [a, b] = std::ranges::mismatch(last, text);
    close(static_cast<size_t>(a - last.begin()));
    for (size_t depth = path.size(); depth < text.size(); ++depth) {
      path.push_back(nodes.size());
      nodes.push_back(
          {.depth = static_cast<uint16_t>(depth + 1), .byte = static_cast<uint8_t>(text[depth])});
    }
    nodes.back().token = token;
    last = text;
  }
  close(0);
}

TokenTrie::Forest TokenTrie::build(std::span<const int32_t> tokens) const {
  Forest forest;
  std::vector<int32_t> others;
  for (const int32_t token : tokens)
    (is_plain_text(bytes(token)) ? forest.tokens : others).push_back(token);
  add_nodes(forest.tokens, forest.nodes);
  forest.others = forest.nodes.size();
  BushFinder(forest).run();
  add_nodes(others, forest.nodes);
  forest.nodes.shrink_to_fit();
  forest.bushes.shrink_to_fit();
  forest.tokens.shrink_to_fit();
  return forest;
}

size_t TokenTrie::Forest::memory_bytes() const {
  return nodes.size() * sizeof(Node) + bushes.size() * sizeof(Bush) +
         tokens.size() * sizeof(int32_t);
}

size_t TokenTrie::memory_bytes() const {
  size_t sum = bytes_.size() + offsets_.size() * sizeof(uint32_t) + all_.memory_bytes();
  for (const Slice& slice : slices_)
    sum += slice.tokens.size() * sizeof(uint64_t) + slice.rest.memory_bytes();
  return sum;
}

}  // namespace weir::grammar
