// Splitting, stripping and replacing.
#include "jinja/split.h"

#include <algorithm>
#include <bitset>

#include "jinja/codepoint.h"
#include "jinja/operators.h"

namespace weir::jinja {

namespace {

constexpr size_t kNotFound = std::string_view::npos;

// Start of the code point that ends at `end`.
size_t previous(std::string_view text, size_t end) {
  do --end;
  while (is_continuation(text[end]));
  return end;
}

char32_t codepoint_at(std::string_view text, size_t offset) {
  const char* at = text.data() + offset;
  return next_codepoint(at);
}

bool is_line_end(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

// Adds a piece; lists of pieces are bounded as all values are.
bool add_piece(Runtime& rt, std::vector<std::string_view>& pieces, std::string_view piece) {
  if (pieces.size() >= rt.limits().memory_bytes / (sizeof(Value) + sizeof(Str)))
    return rt.reserve(rt.limits().memory_bytes + 1);
  pieces.push_back(piece);
  return rt.charge();
}

// A set of characters, quick for the usual case of ASCII ones.
class CharSet {
 public:
  explicit CharSet(std::string_view chars) {
    const char* at = chars.data();
    const char* end = at + chars.size();
    while (at < end) {
      const char32_t c = next_codepoint(at);
      if (c < 128) {
        ascii_.set(c);
      } else {
        others_.push_back(c);
      }
    }
    std::sort(others_.begin(), others_.end());
  }

  bool has(char32_t c) const {
    return c < 128 ? ascii_.test(c) : std::binary_search(others_.begin(), others_.end(), c);
  }

 private:
  std::bitset<128> ascii_;
  std::vector<char32_t> others_;
};

}  // namespace

bool split_on(Runtime& rt, std::string_view text, std::string_view separator, int64_t splits_max,
              std::vector<std::string_view>& pieces) {
  size_t from = 0;
  while (splits_max < 0 || splits_max-- > 0) {
    const size_t at = find_text(text, separator, from);
    if (at == kNotFound) break;
    if (!rt.charge_bytes(at - from) || !add_piece(rt, pieces, text.substr(from, at - from)))
      return false;
    from = at + separator.size();
  }
  return add_piece(rt, pieces, text.substr(from)) && rt.charge_bytes(text.size() - from);
}

bool split_on_from_right(Runtime& rt, std::string_view text, std::string_view separator,
                         int64_t splits_max, std::vector<std::string_view>& pieces) {
  // Every search with a long needle turns the text around: paid for in full.
  while (splits_max < 0 || splits_max-- > 0) {
    const size_t at = find_last_text(text, separator);
    if (at == kNotFound) break;
    if (!rt.charge_bytes(separator.size() > 16 ? 32 * text.size() : text.size() - at) ||
        !add_piece(rt, pieces, text.substr(at + separator.size())))
      return false;
    text = text.substr(0, at);
  }
  pieces.push_back(text);
  std::reverse(pieces.begin(), pieces.end());
  return rt.charge_bytes(text.size());
}

bool split_words(Runtime& rt, std::string_view text, int64_t splits_max,
                 std::vector<std::string_view>& pieces) {
  for (;;) {
    text = strip_left(text);
    if (text.empty()) return true;
    if (splits_max == 0) {
      return add_piece(rt, pieces, text) && rt.charge_bytes(text.size());
    }
    if (splits_max > 0) --splits_max;
    size_t end = 0;
    while (end < text.size() && !is_space(codepoint_at(text, end)))
      end += sequence_bytes(text[end]);
    if (!rt.charge_bytes(end) || !add_piece(rt, pieces, text.substr(0, end))) return false;
    text.remove_prefix(end);
  }
}

bool split_words_from_right(Runtime& rt, std::string_view text, int64_t splits_max,
                            std::vector<std::string_view>& pieces) {
  for (;;) {
    text = strip_right(text);
    if (text.empty()) break;
    if (splits_max == 0) {
      pieces.push_back(text);
      break;
    }
    if (splits_max > 0) --splits_max;
    size_t start = text.size();
    while (start > 0 && !is_space(codepoint_at(text, previous(text, start))))
      start = previous(text, start);
    if (!rt.charge_bytes(text.size() - start) || !add_piece(rt, pieces, text.substr(start)))
      return false;
    text = text.substr(0, start);
  }
  std::reverse(pieces.begin(), pieces.end());
  return rt.charge_bytes(text.size());
}

bool split_lines(Runtime& rt, std::string_view text, bool keep_ends,
                 std::vector<std::string_view>& pieces) {
  size_t start = 0;
  while (start < text.size()) {
    size_t end = start;
    while (end < text.size() && !is_line_end(codepoint_at(text, end)))
      end += sequence_bytes(text[end]);
    size_t next = end;
    if (next < text.size()) {
      const bool pair = text.substr(next).starts_with("\r\n");
      next += pair ? 2 : sequence_bytes(text[next]);
    }
    if (!rt.charge_bytes(next - start) ||
        !add_piece(rt, pieces, text.substr(start, (keep_ends ? next : end) - start)))
      return false;
    start = next;
  }
  return true;
}

std::string_view strip_chars(std::string_view text, std::string_view chars, Side side) {
  const CharSet set(chars);
  size_t start = 0, end = text.size();
  if (side != Side::kRight)
    while (start < end && set.has(codepoint_at(text, start))) start += sequence_bytes(text[start]);
  if (side != Side::kLeft)
    while (end > start && set.has(codepoint_at(text, previous(text, end))))
      end = previous(text, end);
  return text.substr(start, end - start);
}

Value replace_text(Runtime& rt, std::string_view text, std::string_view from, std::string_view to,
                   int64_t count, bool markup) {
  TextBuilder out(rt);
  size_t at = 0;
  if (from.empty()) {
    // Before every character and at the end.
    for (; count != 0; --count) {
      const size_t bytes = at < text.size() ? sequence_bytes(text[at]) : 0;
      if (!out.add(to) || !out.add(text.substr(at, bytes))) return Value::error();
      at += bytes;
      if (bytes == 0) break;
    }
  } else {
    for (; count != 0; --count) {
      const size_t found = find_text(text, from, at);
      if (found == kNotFound) break;
      if (!out.add(text.substr(at, found - at)) || !out.add(to)) return Value::error();
      at = found + from.size();
    }
    if (at == 0) return rt.charge_bytes(text.size()) ? rt.borrow(text, markup) : Value::error();
  }
  if (!out.add(text.substr(at))) return Value::error();
  return out.take(markup);
}

}  // namespace weir::jinja
