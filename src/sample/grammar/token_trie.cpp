#include "sample/grammar/token_trie.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace weir::sample::grammar {

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
    {CharClass::kText, 24, LeadingSpace::kNone},
    {CharClass::kText, 12, LeadingSpace::kNone},
    {CharClass::kText, 6, LeadingSpace::kNone},
    {CharClass::kText, kEndlessRun, LeadingSpace::kAlways},
    {CharClass::kWord, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kWord, kEndlessRun, LeadingSpace::kNone},
    {CharClass::kWord, 8, LeadingSpace::kNone},
    {CharClass::kLetter, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kLetter, kEndlessRun, LeadingSpace::kNone},
    {CharClass::kLower, kEndlessRun, LeadingSpace::kMaybe},
    {CharClass::kLower, kEndlessRun, LeadingSpace::kNone},
    {CharClass::kLower, 8, LeadingSpace::kNone},
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

std::vector<TokenTrie::Node> TokenTrie::build(std::span<const int32_t> tokens) const {
  std::vector<Node> nodes;
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
  nodes.shrink_to_fit();
  return nodes;
}

size_t TokenTrie::memory_bytes() const {
  size_t sum = bytes_.size() + offsets_.size() * sizeof(uint32_t) + all_.size() * sizeof(Node);
  for (const Slice& slice : slices_)
    sum += slice.tokens.size() * sizeof(uint64_t) + slice.rest.size() * sizeof(Node);
  return sum;
}

}  // namespace weir::sample::grammar
