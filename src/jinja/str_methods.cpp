// The methods of str, and of Markup where that differs: it escapes string arguments and stays
// Markup.
#include <algorithm>
#include <iterator>

#include "jinja/builtin.h"
#include "jinja/codepoint.h"
#include "jinja/format.h"
#include "jinja/iterator.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/split.h"

namespace weir::jinja {

namespace {

constexpr size_t kNotFound = std::string_view::npos;

std::string_view self_text(const Call& call) { return call.self.text(); }
bool self_markup(const Call& call) { return call.self.str->markup; }

Value wrong_type(const Call& call, size_t i, const char* expected) {
  if (call[i].is(Type::kUndefined)) return call.rt.fail_undefined(call[i]);
  return call.rt.fail("expected ", expected, " as argument ", std::to_string(i + 1), ", found ",
                      type_name(call[i].type));
}

// A string argument. False, with the error set, if it is none.
bool text_argument(const Call& call, size_t i, std::string_view& text) {
  if (!call[i].is(Type::kStr)) {
    wrong_type(call, i, "a string");
    return false;
  }
  text = call[i].text();
  return true;
}

// The same; a Markup's method escapes it.
bool safe_argument(const Call& call, size_t i, std::string_view& text) {
  if (!text_argument(call, i, text)) return false;
  if (!self_markup(call)) return true;
  const Value safe = escape_html(call.rt, call[i]);
  if (safe.is_error()) return false;
  text = safe.text();
  return true;
}

Value part(const Call& call, std::string_view text) {
  return call.rt.borrow(text, self_markup(call));
}

Value made(const Call& call, const std::string& text) {
  return call.rt.reserve(text.size()) ? call.rt.string(text, self_markup(call)) : Value::error();
}

template <std::string (*Map)(std::string_view)>
Value map_case(const Call& call) {
  if (!call.rt.charge_bytes(32 * self_text(call).size())) return Value::error();
  return made(call, Map(self_text(call)));
}

Value upper(const Call& call) { return map_case<to_upper>(call); }
Value lower(const Call& call) { return map_case<to_lower>(call); }
Value capitalize(const Call& call) { return map_case<to_capitalized>(call); }
Value title(const Call& call) { return map_case<to_title>(call); }
Value swapcase(const Call& call) { return map_case<to_swapped_case>(call); }

// True if there are characters and all are of the class.
template <bool (*Class)(char32_t)>
Value all_are(const Call& call) {
  const std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(32 * text.size())) return Value::error();
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end)
    if (!Class(next_codepoint(at))) return Value::of(false);
  return Value::of(!text.empty());
}

bool is_ascii(char32_t c) { return c < 128; }
bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }

Value isascii(const Call& call) {
  return self_text(call).empty() ? Value::of(true) : all_are<is_ascii>(call);
}

Value isprintable(const Call& call) {
  return self_text(call).empty() ? Value::of(true) : all_are<is_printable>(call);
}

// islower, isupper: some cased character, and none of the other case.
template <bool (*Wanted)(char32_t), bool (*Other)(char32_t)>
Value all_cased(const Call& call) {
  const std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(32 * text.size())) return Value::error();
  bool some = false;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char32_t c = next_codepoint(at);
    if (Other(c) || is_title(c)) return Value::of(false);
    some = some || Wanted(c);
  }
  return Value::of(some);
}

Value istitle(const Call& call) {
  const std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(32 * text.size())) return Value::error();
  bool some = false, in_word = false;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char32_t c = next_codepoint(at);
    const bool starts = is_upper(c) || is_title(c), goes_on = is_lower(c);
    if ((starts && in_word) || (goes_on && !in_word)) return Value::of(false);
    in_word = starts || goes_on;
    some = some || in_word;
  }
  return Value::of(some);
}

Value isidentifier(const Call& call) {
  const std::string_view text = self_text(call);
  if (text.empty() || is_numeric(static_cast<uint8_t>(text[0]))) return Value::of(false);
  return all_are<is_word>(call);
}

template <Side side>
Value strip(const Call& call) {
  std::string_view text = self_text(call), chars;
  if (!call.rt.charge_bytes(text.size())) return Value::error();
  if (call.has(0) && !call[0].is(Type::kNone)) {
    if (!safe_argument(call, 0, chars) || !call.rt.charge_bytes(32 * chars.size()))
      return Value::error();
    return part(call, strip_chars(text, chars, side));
  }
  if (side != Side::kRight) text = strip_left(text);
  if (side != Side::kLeft) text = strip_right(text);
  return part(call, text);
}

Value to_list(const Call& call, const std::vector<std::string_view>& pieces) {
  if (!call.rt.reserve(pieces.size() * (sizeof(Value) + sizeof(Str)))) return Value::error();
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(part(call, piece));
  return call.rt.list(items);
}

template <bool from_right>
Value split(const Call& call) {
  int64_t splits_max = -1;
  if (call.has(1) && !to_int(call, call[1], splits_max)) return Value::error();
  std::vector<std::string_view> pieces;
  const std::string_view text = self_text(call);
  std::string_view separator;
  bool fine;
  if (!call.has(0) || call[0].is(Type::kNone)) {
    fine = from_right ? split_words_from_right(call.rt, text, splits_max, pieces)
                      : split_words(call.rt, text, splits_max, pieces);
  } else {
    if (!text_argument(call, 0, separator)) return Value::error();
    if (separator.empty()) return call.rt.fail("empty separator");
    fine = from_right ? split_on_from_right(call.rt, text, separator, splits_max, pieces)
                      : split_on(call.rt, text, separator, splits_max, pieces);
  }
  return fine ? to_list(call, pieces) : Value::error();
}

Value splitlines(const Call& call) {
  std::vector<std::string_view> pieces;
  if (!split_lines(call.rt, self_text(call), call.has(0) && truthy(call[0]), pieces))
    return Value::error();
  return to_list(call, pieces);
}

template <bool from_right>
Value partition(const Call& call) {
  std::string_view separator;
  if (!safe_argument(call, 0, separator)) return Value::error();
  if (separator.empty()) return call.rt.fail("empty separator");
  const std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(text.size())) return Value::error();
  const size_t at = from_right ? find_last_text(text, separator) : find_text(text, separator);
  std::string_view pieces[] = {from_right ? "" : text, "", from_right ? text : ""};
  if (at != kNotFound) {
    pieces[0] = text.substr(0, at);
    pieces[1] = separator;
    pieces[2] = text.substr(at + separator.size());
  }
  const Value items[] = {part(call, pieces[0]), part(call, pieces[1]), part(call, pieces[2])};
  return call.rt.tuple(items);
}

// The part of the text that start and end arguments (at `first` and after it) select, in bytes.
// `exists` is false if start lies after the end of the text.
bool window(const Call& call, size_t first, size_t& begin, size_t& end, bool& exists) {
  const std::string_view text = self_text(call);
  begin = 0;
  end = text.size();
  exists = true;
  if (!call.has(first)) return true;
  if (!call.rt.charge_bytes(text.size())) return false;
  const int64_t length = call.self.str->length();
  int64_t start = 0, stop = length;
  if (!to_optional_int(call, call[first], start)) return false;
  if (call.has(first + 1) && !to_optional_int(call, call[first + 1], stop)) return false;
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (stop < 0) stop = std::max<int64_t>(stop + length, 0);
  exists = start <= length && start <= stop;
  stop = std::min(stop, length);
  begin = codepoint_offset(text, static_cast<size_t>(std::min(start, length)));
  end = exists ? codepoint_offset(text, static_cast<size_t>(stop)) : begin;
  return true;
}

// Code point index of the match, -1 if there is none.
bool search(const Call& call, bool from_right, int64_t& index) {
  std::string_view needle;
  size_t begin, end;
  bool exists;
  if (!text_argument(call, 0, needle) || !window(call, 1, begin, end, exists)) return false;
  const std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(text.size())) return false;
  const std::string_view part_of = text.substr(begin, end - begin);
  const size_t at = !exists      ? kNotFound
                    : from_right ? find_last_text(part_of, needle)
                                 : find_text(part_of, needle);
  index = at == kNotFound ? -1 : static_cast<int64_t>(count_codepoints(text.substr(0, begin + at)));
  return true;
}

template <bool from_right>
Value find(const Call& call) {
  int64_t index;
  return search(call, from_right, index) ? Value::of(index) : Value::error();
}

template <bool from_right>
Value index(const Call& call) {
  int64_t found;
  if (!search(call, from_right, found)) return Value::error();
  return found >= 0 ? Value::of(found) : call.rt.fail("substring not found");
}

Value count(const Call& call) {
  std::string_view needle;
  size_t begin, end;
  bool exists;
  if (!text_argument(call, 0, needle) || !window(call, 1, begin, end, exists))
    return Value::error();
  const std::string_view text = self_text(call).substr(begin, end - begin);
  if (!exists) return Value::of(int64_t{0});
  if (!call.rt.charge_bytes(text.size())) return Value::error();
  if (needle.empty()) return Value::of(static_cast<int64_t>(count_codepoints(text)) + 1);
  int64_t times = 0;
  for (size_t at = find_text(text, needle); at != kNotFound;
       at = find_text(text, needle, at + needle.size())) {
    ++times;
    if (!call.rt.charge()) return Value::error();
  }
  return Value::of(times);
}

template <bool at_end>
Value starts_or_ends(const Call& call) {
  size_t begin, end;
  bool exists;
  if (!window(call, 1, begin, end, exists)) return Value::error();
  const std::string_view text = self_text(call).substr(begin, end - begin);
  const auto matches = [&](const Value& affix) {
    return exists && (at_end ? text.ends_with(affix.text()) : text.starts_with(affix.text()));
  };
  if (call[0].is(Type::kStr)) {
    if (!call.rt.charge_bytes(call[0].str->bytes)) return Value::error();
    return Value::of(matches(call[0]));
  }
  if (!call[0].is(Type::kTuple)) return wrong_type(call, 0, "a string or a tuple of strings");
  for (const Value& affix : call[0].list->span()) {
    if (!affix.is(Type::kStr)) return wrong_type(call, 0, "a tuple of strings");
    if (!call.rt.charge_bytes(affix.str->bytes)) return Value::error();
    if (matches(affix)) return Value::of(true);
  }
  return Value::of(false);
}

Value removeprefix(const Call& call) {
  std::string_view text = self_text(call), affix;
  if (!text_argument(call, 0, affix) || !call.rt.charge_bytes(affix.size())) return Value::error();
  if (text.starts_with(affix)) text.remove_prefix(affix.size());
  return call.rt.borrow(text);
}

Value removesuffix(const Call& call) {
  std::string_view text = self_text(call), affix;
  if (!text_argument(call, 0, affix) || !call.rt.charge_bytes(affix.size())) return Value::error();
  if (text.ends_with(affix)) text.remove_suffix(affix.size());
  return call.rt.borrow(text);
}

Value replace(const Call& call) {
  std::string_view from, to;
  int64_t times = -1;
  if (!safe_argument(call, 0, from) || !safe_argument(call, 1, to)) return Value::error();
  if (call.has(2) && !to_int(call, call[2], times)) return Value::error();
  return replace_text(call.rt, self_text(call), from, to, times, self_markup(call));
}

Value join(const Call& call) {
  Iterator* items = iterate(call.rt, call[0], "can only join an iterable, not '", "'");
  if (!items) return Value::error();
  TextBuilder out(call.rt);
  for (int64_t i = 0;; ++i) {
    Value item = items->next(call.rt);
    if (item.is_error()) return item;
    if (item.is_missing()) break;
    if (self_markup(call)) item = escape_html(call.rt, item);
    if (item.is_error()) return item;
    if (!item.is(Type::kStr))
      return call.rt.fail("sequence item ", std::to_string(i), ": expected str instance, ",
                          type_name(item.type), " found");
    if ((i > 0 && !out.add(self_text(call))) || !out.add(item.text())) return Value::error();
  }
  return out.take(self_markup(call));
}

enum class Justify : uint8_t { kLeft, kCentre, kRight };

template <Justify justify>
Value pad(const Call& call) {
  int64_t width = 0;
  std::string_view fill = " ";
  if (!to_int(call, call[0], width)) return Value::error();
  if (call.has(1)) {
    if (!text_argument(call, 1, fill)) return Value::error();
    if (call[1].str->length() != 1)
      return call.rt.fail("The fill character must be exactly one character long");
    if (!safe_argument(call, 1, fill)) return Value::error();
  }
  if (!call.rt.charge_bytes(self_text(call).size())) return Value::error();
  const int64_t length = call.self.str->length();
  if (width <= length) return part(call, self_text(call));
  const int64_t room = width - length;
  // Python puts the odd space on the left if the width is odd, else on the right.
  const int64_t left = justify == Justify::kLeft    ? 0
                       : justify == Justify::kRight ? room
                                                    : room / 2 + (room & width & 1);
  TextBuilder out(call.rt);
  if (!out.fill(fill, static_cast<size_t>(left)) || !out.add(self_text(call)) ||
      !out.fill(fill, static_cast<size_t>(room - left)))
    return Value::error();
  return out.take(self_markup(call));
}

Value zfill(const Call& call) {
  int64_t width = 0;
  if (!to_int(call, call[0], width)) return Value::error();
  std::string_view text = self_text(call);
  if (!call.rt.charge_bytes(text.size())) return Value::error();
  const int64_t room = std::max<int64_t>(width - call.self.str->length(), 0);
  TextBuilder out(call.rt);
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    if (!out.add(text[0])) return Value::error();
    text.remove_prefix(1);
  }
  if (!out.fill("0", static_cast<size_t>(room)) || !out.add(text)) return Value::error();
  return out.take(self_markup(call));
}

Value expandtabs(const Call& call) {
  int64_t size = 8;
  if (call.has(0) && !to_int(call, call[0], size)) return Value::error();
  TextBuilder out(call.rt);
  int64_t column = 0;
  for (const char c : self_text(call)) {
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      if (!out.fill(" ", static_cast<size_t>(spaces))) return Value::error();
      column += spaces;
      continue;
    }
    if (!out.add(c)) return Value::error();
    if (c == '\n' || c == '\r') {
      column = 0;
    } else if (!is_continuation(c)) {
      ++column;
    }
  }
  return out.take(self_markup(call));
}

Value format(const Call& call) { return format_braces(call.rt, *call.self.str, call.raw); }

Value format_map(const Call& call) {
  if (!call[0].is(Type::kDict)) return wrong_type(call, 0, "a mapping");
  if (!call.rt.charge(call[0].dict->size())) return Value::error();
  std::vector<Keyword> keywords;
  for (const Entry& entry : call[0].dict->entries())
    if (entry.key.is(Type::kStr)) keywords.push_back({entry.key.text(), entry.value});
  return format_braces(call.rt, *call.self.str, {{}, keywords});
}

constexpr Builtin kMethods[] = {
    {"capitalize", "", capitalize},
    {"center", "/ width fillchar?", pad<Justify::kCentre>},
    {"count", "/ sub start? end?", count},
    {"endswith", "/ suffix start? end?", starts_or_ends<true>},
    {"expandtabs", "tabsize?", expandtabs},
    {"find", "/ sub start? end?", find<false>},
    {"format", "*", format},
    {"format_map", "/ mapping", format_map},
    {"index", "/ sub start? end?", index<false>},
    {"isalnum", "", all_are<is_alnum>},
    {"isalpha", "", all_are<is_alpha>},
    {"isascii", "", isascii},
    {"isdecimal", "", all_are<is_decimal>},
    {"isdigit", "", all_are<is_digit>},
    {"isidentifier", "", isidentifier},
    {"islower", "", all_cased<is_lower, is_upper>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isprintable", "", isprintable},
    {"isspace", "", all_are<is_space>},
    {"istitle", "", istitle},
    {"isupper", "", all_cased<is_upper, is_lower>},
    {"join", "/ iterable", join},
    {"ljust", "/ width fillchar?", pad<Justify::kLeft>},
    {"lower", "", lower},
    {"lstrip", "/ chars?", strip<Side::kLeft>},
    {"partition", "/ sep", partition<false>},
    {"removeprefix", "/ prefix", removeprefix},
    {"removesuffix", "/ suffix", removesuffix},
    {"replace", "/ old new count?", replace},
    {"rfind", "/ sub start? end?", find<true>},
    {"rindex", "/ sub start? end?", index<true>},
    {"rjust", "/ width fillchar?", pad<Justify::kRight>},
    {"rpartition", "/ sep", partition<true>},
    {"rsplit", "sep? maxsplit?", split<true>},
    {"rstrip", "/ chars?", strip<Side::kRight>},
    {"split", "sep? maxsplit?", split<false>},
    {"splitlines", "keepends?", splitlines},
    {"startswith", "/ prefix start? end?", starts_or_ends<false>},
    {"strip", "/ chars?", strip<Side::kBoth>},
    {"swapcase", "", swapcase},
    {"title", "", title},
    {"upper", "", upper},
    {"zfill", "/ width", zfill},
};

}  // namespace

std::span<const Builtin> str_methods() { return kMethods; }

}  // namespace weir::jinja
