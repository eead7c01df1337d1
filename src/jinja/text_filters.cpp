// Filters on text. Not offered: pprint, random, striptags, urlencode, urlize, wordwrap, xmlattr,
// filesizeformat; they are for web pages, no chat template has been seen to use one.
#include <algorithm>

#include "jinja/builtin.h"
#include "jinja/codepoint.h"
#include "jinja/format.h"
#include "jinja/json.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/split.h"

namespace weir::jinja {

namespace {

// Calls a method of str on the filtered value, made a string if it is none.
Value by_method(const Call& call, std::string_view method, std::span<const Value> arguments = {}) {
  const Value text = to_str(call.rt, call.self);
  if (text.is_error()) return text;
  const Builtin* builtin = find_method(Type::kStr, method);
  return invoke(call.rt, *builtin, text, {arguments, {}});
}

Value upper(const Call& call) { return by_method(call, "upper"); }
Value lower(const Call& call) { return by_method(call, "lower"); }
Value capitalize(const Call& call) { return by_method(call, "capitalize"); }

Value trim(const Call& call) {
  return by_method(call, "strip", {call.args, call.has(0) ? size_t{1} : size_t{0}});
}

Value center(const Call& call) {
  const Value width = call.has(0) ? call[0] : Value::of(int64_t{80});
  return by_method(call, "center", {&width, 1});
}

Value string(const Call& call) { return to_str(call.rt, call.self); }

Value safe(const Call& call) {
  const Value text = to_str(call.rt, call.self);
  return text.is_error() ? text : call.rt.borrow(text.text(), true);
}

Value escape(const Call& call) { return escape_html(call.rt, call.self); }

Value forceescape(const Call& call) {
  const Value text = to_str(call.rt, call.self);
  return text.is_error() ? text : escape_html(call.rt, call.rt.borrow(text.text()));
}

Value replace(const Call& call) {
  Value texts[3] = {call.self, call[0], call[1]};
  for (Value& text : texts) {
    text = to_str(call.rt, text);
    if (text.is_error()) return text;
  }
  int64_t count = -1;
  if (!to_optional_int(call, call[2], count)) return Value::error();
  return replace_text(call.rt, texts[0].text(), texts[1].text(), texts[2].text(), count, false);
}

Value format(const Call& call) {
  const Arguments& raw = call.raw;
  if (!raw.positional.empty() && !raw.keywords.empty())
    return call.rt.fail("can't handle positional and keyword arguments at the same time");
  const Value text = to_str(call.rt, call.self);
  if (text.is_error()) return text;
  if (raw.keywords.empty()) return format_percent(call.rt, text, call.rt.tuple(raw.positional));
  Dict* values = call.rt.arena().make<Dict>();
  for (const Keyword& keyword : raw.keywords)
    values->set(call.rt.arena(), call.rt.borrow(keyword.name), keyword.value);
  return format_percent(call.rt, text, Value::of(Type::kDict, values));
}

Value indent(const Call& call) {
  if (call.self.is(Type::kUndefined)) return call.rt.fail_undefined(call.self);
  if (!call.self.is(Type::kStr))
    return call.rt.fail("indent expected a string, found ", type_name(call.self.type));
  TextBuilder spaces(call.rt);
  if (call.has(0) && call[0].is(Type::kStr)) {
    spaces.add(call[0].text());
  } else {
    int64_t width = 4;
    if (call.has(0) && !to_int(call, call[0], width)) return Value::error();
    if (!spaces.fill(" ", static_cast<size_t>(std::max<int64_t>(width, 0)))) return Value::error();
  }
  const bool first = call.has(1) && truthy(call[1]), blank = call.has(2) && truthy(call[2]);
  // One more line end, so that a text that ends with one keeps it.
  const Value text = call.rt.concat(call.self.text(), "\n", false);
  std::vector<std::string_view> lines;
  if (text.is_error() || !split_lines(call.rt, text.text(), false, lines)) return Value::error();
  TextBuilder out(call.rt);
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indented = i == 0 ? first : blank || !lines[i].empty();
    if ((i > 0 && !out.add('\n')) || (indented && !out.add(spaces.view())) || !out.add(lines[i]))
      return Value::error();
  }
  return out.take(call.self.str->markup);
}

Value title(const Call& call) {
  const Value text = to_str(call.rt, call.self);
  if (text.is_error() || !call.rt.charge_bytes(32 * text.str->bytes)) return Value::error();
  const auto separates = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  std::string out;
  const char* at = text.text().data();
  const char* end = at + text.str->bytes;
  while (at < end) {
    const char32_t first = next_codepoint(at);
    append_upper(out, first);
    if (separates(first)) continue;
    const char* rest = at;
    while (at < end) {
      const char* here = at;
      if (separates(next_codepoint(at))) {
        at = here;
        break;
      }
    }
    out += to_lower({rest, static_cast<size_t>(at - rest)});
  }
  return call.rt.reserve(out.size()) ? call.rt.string(out) : Value::error();
}

Value truncate(const Call& call) {
  int64_t length = 255, leeway = 5;
  if (call.has(0) && !to_int(call, call[0], length)) return Value::error();
  if (!to_optional_int(call, call[3], leeway)) return Value::error();
  std::string_view end = "...";
  if (call.has(2)) {
    if (!call[2].is(Type::kStr)) return call.rt.fail("truncate expected end to be a string");
    end = call[2].text();
  }
  const auto end_length = static_cast<int64_t>(count_codepoints(end));
  if (length < end_length)
    return call.rt.fail("expected length >= ", std::to_string(end_length), ", got ",
                        std::to_string(length));
  if (leeway < 0) return call.rt.fail("expected leeway >= 0, got ", std::to_string(leeway));
  const Value size = length_of(call.rt, call.self);
  if (size.is_error()) return size;
  if (size.integer <= length || size.integer - length <= leeway) return call.self;
  if (!call.self.is(Type::kStr))
    return call.rt.fail("truncate expected a string, found ", type_name(call.self.type));
  const std::string_view text = call.self.text();
  std::string_view kept =
      text.substr(0, codepoint_offset(text, static_cast<size_t>(length - end_length)));
  if (!call.has(1) || !truthy(call[1])) kept = kept.substr(0, kept.rfind(' '));
  return add(call.rt, call.rt.borrow(kept, call.self.str->markup), call.rt.borrow(end));
}

Value wordcount(const Call& call) {
  const Value text = to_str(call.rt, call.self);
  if (text.is_error() || !call.rt.charge_bytes(32 * text.str->bytes)) return Value::error();
  int64_t words = 0;
  bool inside = false;
  const char* at = text.text().data();
  const char* end = at + text.str->bytes;
  while (at < end) {
    const bool word = is_word(next_codepoint(at));
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::of(words);
}

constexpr Builtin kFilters[] = {
    {"capitalize", "", capitalize},
    {"center", "width?", center},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", forceescape},
    {"format", "*", format},
    {"from_json", "", filter_from_json},
    {"indent", "width? first? blank?", indent},
    {"lower", "", lower},
    {"replace", "old new count?", replace},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
    {"trim", "chars?", trim},
    {"truncate", "length? killwords? end? leeway?", truncate},
    {"upper", "", upper},
    {"wordcount", "", wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace weir::jinja
