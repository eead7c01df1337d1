// str.format.
#include <algorithm>

#include "base/utf8.h"
#include "jinja/codepoint.h"
#include "jinja/format.h"
#include "jinja/format_spec.h"
#include "jinja/number.h"
#include "jinja/object.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

bool append_formatted(Runtime& rt, TextBuilder& out, const Value& value, std::string_view text) {
  if (text.empty()) return append_str(rt, out, value);
  const auto refuse = [&rt, &value] {
    rt.fail("invalid format specification for a value of type '", type_name(value.type), "'");
    return false;
  };
  FormatSpec spec;
  if (!parse_spec(text, spec)) return refuse();
  if (value.is(Type::kStr)) {
    if ((spec.type != '\0' && spec.type != 's') || spec.align == '=' || spec.sign != '-' ||
        spec.alternate || spec.grouping)
      return refuse();
    return out.add(format_text(value.text(), spec));
  }
  const bool float_type = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.is(Type::kFloat) || (value.is_integral() && float_type && spec.type != '\0')) {
    if (spec.type != '\0' && spec.type != 'n' && !float_type) return refuse();
    return out.add(format_float(value.as_double(), spec));
  }
  if (!value.is_integral() || spec.precision >= 0 || spec.type == 's') return refuse();
  if (spec.type != 'c') return out.add(format_int(value.as_integer(), spec));
  if (value.as_integer() < 0 || value.as_integer() >= 0x110000) return refuse();
  std::string text_of_char;
  append_utf8(text_of_char, static_cast<char32_t>(value.as_integer()));
  return out.add(format_text(text_of_char, spec));
}

class BracesFormatter {
 public:
  BracesFormatter(Runtime& rt, const Arguments& arguments, bool markup)
      : rt_(rt), arguments_(arguments), markup_(markup) {}

  // Fields may hold fields in their specification, once.
  bool run(std::string_view format, TextBuilder& out, int depth) {
    if (depth > 2) return fail("Max string recursion exceeded");
    while (!format.empty()) {
      const size_t plain = std::min(format.find_first_of("{}"), format.size());
      if (!out.add(format.substr(0, plain))) return false;
      format.remove_prefix(plain);
      if (format.empty()) break;
      const char brace = format[0];
      format.remove_prefix(1);
      if (!format.empty() && format[0] == brace) {
        if (!out.add(brace)) return false;
        format.remove_prefix(1);
      } else if (brace == '}') {
        return fail("Single '}' encountered in format string");
      } else if (!add_field(format, out, depth)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool fail(std::string message) {
    rt_.fail(std::move(message));
    return false;
  }

  // At the text after "{": takes it up to its "}".
  bool add_field(std::string_view& format, TextBuilder& out, int depth) {
    size_t end = 0;
    for (int open = 1; end < format.size(); ++end) {
      open += format[end] == '{' ? 1 : format[end] == '}' ? -1 : 0;
      if (open == 0) break;
    }
    if (end == format.size()) return fail("expected '}' before end of string");
    std::string_view field = format.substr(0, end);
    format.remove_prefix(end + 1);
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    Value value = look_up(field.substr(0, name_end));
    if (value.is_error()) return false;
    field.remove_prefix(name_end);
    if (field.starts_with('!')) {
      if (field.size() < 2 || (field.size() > 2 && field[2] != ':'))
        return fail("expected ':' after conversion specifier");
      value = converted(value, field[1]);
      if (value.is_error()) return false;
      field.remove_prefix(2);
    }
    if (field.starts_with(':')) field.remove_prefix(1);
    TextBuilder spec(rt_);
    if (!run(field, spec, depth + 1)) return false;
    TextBuilder text(rt_);
    if (!append_formatted(rt_, text, value, spec.view())) return false;
    if (!markup_ || (value.is(Type::kStr) && value.str->markup)) return out.add(text.view());
    const Value safe = escape_html(rt_, rt_.string(text.view()));
    return !safe.is_error() && out.add(safe.text());
  }

  Value converted(const Value& value, char conversion) {
    if (conversion == 's') return to_str(rt_, value);
    if (conversion != 'r' && conversion != 'a')
      return rt_.fail("Unknown conversion specifier ", std::string_view(&conversion, 1));
    TextBuilder text(rt_);
    if (!append_repr(rt_, text, value)) return Value::error();
    return text.take();
  }

  // A field's value: its first name, then .attributes and [items].
  Value look_up(std::string_view name) {
    const size_t first = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first));
    name.remove_prefix(first);
    while (!value.is_error() && !name.empty()) {
      const bool item = name[0] == '[';
      name.remove_prefix(1);
      const size_t end = item ? name.find(']') : std::min(name.find_first_of(".["), name.size());
      if (end == std::string_view::npos) return rt_.fail("Missing ']' in format string");
      const Value part = rt_.string(name.substr(0, end));
      if (part.str->bytes == 0) return rt_.fail("Empty attribute in format string");
      int64_t index;
      if (!item) {
        value = get_attribute(rt_, value, *part.str);
      } else if (parse_int(part.text(), 10, index) == IntParse::kOk && index >= 0) {
        value = get_item(rt_, value, Value::of(index));
      } else {
        value = get_item(rt_, value, part);
      }
      name.remove_prefix(std::min(item ? end + 1 : end, name.size()));
    }
    return value;
  }

  Value argument(std::string_view name) {
    int64_t index = next_;
    const bool numbered = !name.empty() && name[0] >= '0' && name[0] <= '9';
    if (!name.empty() && !numbered) {
      if (!rt_.charge(arguments_.keywords.size())) return Value::error();
      for (const Keyword& keyword : arguments_.keywords)
        if (keyword.name == name) return keyword.value;
      return rt_.fail("no argument '", name, "' for the format string");
    }
    if (numbered) {
      if (parse_int(name, 10, index) != IntParse::kOk)
        return rt_.fail("format string has no argument ", name);
    } else {
      ++next_;
    }
    if ((numbered && next_ > 0) || (!numbered && numbered_))
      return rt_.fail("cannot switch between automatic and manual field numbering");
    numbered_ = numbered_ || numbered;
    if (index >= static_cast<int64_t>(arguments_.positional.size()))
      return rt_.fail("Replacement index ", std::to_string(index), " out of range");
    return arguments_.positional[static_cast<size_t>(index)];
  }

  Runtime& rt_;
  const Arguments& arguments_;
  bool markup_;
  int64_t next_ = 0;
  bool numbered_ = false;
};

}  // namespace

Value format_braces(Runtime& rt, const Str& format, const Arguments& arguments) {
  TextBuilder out(rt);
  if (!BracesFormatter(rt, arguments, format.markup).run(format.view(), out, 1))
    return Value::error();
  return out.take(format.markup);
}

}  // namespace weir::jinja
