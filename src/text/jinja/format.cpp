// Formatting: Python's two mini-languages for numbers and strings in text.
#include "text/jinja/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/codepoint.h"
#include "text/jinja/number.h"
#include "text/jinja/object.h"
#include "text/jinja/operators.h"
#include "text/jinja/repr.h"

namespace weir::text::jinja {

namespace {

// Widths and precisions beyond this are refused; a template has no use for them.
constexpr int kWidthMax = 10'000;

// What both mini-languages say about one value.
struct Spec {
  std::string_view fill = " ";
  char align = '\0';  // '<' '>' '^' '=', or the type's own.
  char sign = '-';    // '-' only negatives, '+' always, ' ' a space for positives.
  bool alternate = false;
  char grouping = '\0';  // ',' or '_'.
  int width = 0;
  int precision = -1;
  char type = '\0';
};

bool read_number(std::string_view& text, int& number) {
  number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = number * 10 + (text[0] - '0');
    if (number > kWidthMax) return false;
    text.remove_prefix(1);
  }
  return true;
}

// Pads to the width; `prefix_bytes` (sign, 0x) stay in front of '=' padding.
std::string pad(const std::string& body, size_t prefix_bytes, const Spec& spec, char align) {
  const size_t length = count_codepoints(body);
  if (length >= static_cast<size_t>(spec.width)) return body;
  const size_t room = static_cast<size_t>(spec.width) - length;
  const auto fill = [&spec](size_t count) {
    std::string out;
    for (; count > 0; --count) out += spec.fill;
    return out;
  };
  switch (align) {
    case '<':
      return body + fill(room);
    case '^':
      return fill(room / 2) + body + fill(room - room / 2);
    case '=':
      return body.substr(0, prefix_bytes) + fill(room) + body.substr(prefix_bytes);
    default:
      return fill(room) + body;
  }
}

void group_digits(std::string& digits, char separator, size_t every) {
  for (size_t i = digits.size(); i > every; i -= every) digits.insert(i - every, 1, separator);
}

std::string sign_text(bool negative, char sign) {
  return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string digits_in_base(uint64_t number, unsigned base, bool upper) {
  std::string digits;
  do {
    digits += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[number % base];
    number /= base;
  } while (number != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string format_int(int64_t number, const Spec& spec) {
  const char type = spec.type;
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const uint64_t size = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits = digits_in_base(size, base, type == 'X');
  if (spec.precision > 0 && digits.size() < static_cast<size_t>(spec.precision))
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  if (spec.grouping) group_digits(digits, spec.grouping, base == 10 ? 3 : 4);
  std::string prefix = sign_text(number < 0, spec.sign);
  if (spec.alternate && base != 10) prefix += {'0', type};
  return pad(prefix + digits, prefix.size(), spec, spec.align ? spec.align : '>');
}

// The digits of a float without its sign.
std::string float_digits(double number, const Spec& spec) {
  const double size = std::fabs(number);
  if (spec.type == '\0' && spec.precision < 0) return float_repr(size);
  char type = spec.type == '\0' ? 'g' : spec.type == '%' ? 'f' : spec.type;
  if (type == 'n') type = 'g';
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const char format[] = {'%',
                         spec.alternate ? '#' : '.',
                         spec.alternate ? '.' : '*',
                         spec.alternate ? '*' : type,
                         spec.alternate ? type : '\0',
                         '\0'};
  // 309 digits before the point at most.
  std::string digits(static_cast<size_t>(precision) + 330, '\0');
  const double shown = spec.type == '%' ? size * 100 : size;
  const int length = std::snprintf(digits.data(), digits.size(), format, precision, shown);
  digits.resize(static_cast<size_t>(length));
  if (spec.type == '\0' && std::isfinite(size) && digits.find_first_of(".e") == std::string::npos)
    digits += ".0";
  if (spec.type == '%') digits += '%';
  return digits;
}

std::string format_float(double number, const Spec& spec) {
  std::string digits = float_digits(number, spec);
  if (spec.grouping) {
    const size_t point = std::min(digits.find_first_not_of("0123456789"), digits.size());
    std::string whole = digits.substr(0, point);
    group_digits(whole, spec.grouping, 3);
    digits = whole + digits.substr(point);
  }
  const std::string prefix = sign_text(std::signbit(number) && !std::isnan(number), spec.sign);
  return pad(prefix + digits, prefix.size(), spec, spec.align ? spec.align : '>');
}

std::string format_text(std::string_view text, const Spec& spec) {
  if (spec.precision >= 0)
    text = text.substr(0, codepoint_offset(text, static_cast<size_t>(spec.precision)));
  return pad(std::string(text), 0, spec, spec.align ? spec.align : '<');
}

// ---- The % operator ----------------------------------------------------------------------------

class PercentFormatter {
 public:
  PercentFormatter(Runtime& rt, const Value& values, bool markup)
      : rt_(rt), values_(values), markup_(markup), out_(rt) {}

  Value run(std::string_view format) {
    while (!format.empty()) {
      const size_t plain = std::min(format.find('%'), format.size());
      if (!out_.add(format.substr(0, plain))) return Value::error();
      format.remove_prefix(plain);
      if (format.empty()) break;
      format.remove_prefix(1);
      if (!convert(format)) return Value::error();
    }
    const bool spare =
        values_.is(Type::kTuple) ? next_ < values_.list->size : next_ == 0 && !is_mapping();
    if (spare && !keyed_) return rt_.fail("not all arguments converted during string formatting");
    return out_.take(markup_);
  }

 private:
  // What has items may be left alone: Python cannot know whether it is a mapping.
  bool is_mapping() const {
    return values_.is(Type::kDict) || values_.is(Type::kList) || values_.is(Type::kRange) ||
           values_.is(Type::kUndefined);
  }

  bool fail(std::string message) {
    rt_.fail(std::move(message));
    return false;
  }

  // The next positional value.
  bool take(Value& value) {
    const bool tuple = values_.is(Type::kTuple);
    if (next_ >= (tuple ? values_.list->size : 1))
      return fail("not enough arguments for format string");
    value = tuple ? values_.list->items[next_] : values_;
    ++next_;
    return true;
  }

  bool take_key(std::string_view& format, Value& value) {
    if (!values_.is(Type::kDict)) return fail("format requires a mapping");
    int depth = 1;
    size_t end = 1;
    for (; end < format.size() && depth > 0; ++end)
      depth += format[end] == '(' ? 1 : format[end] == ')' ? -1 : 0;
    if (depth > 0) return fail("incomplete format key");
    const std::string_view key = format.substr(1, end - 2);
    format.remove_prefix(end);
    const Value* found = values_.dict->find(key);
    if (!found) return fail(message("no key '", key, "' for the format string"));
    value = *found;
    keyed_ = true;
    return true;
  }

  // A width or precision: digits, or a star for the next value.
  bool read_amount(std::string_view& format, int& amount) {
    if (format.empty() || format[0] != '*')
      return read_number(format, amount) || fail("width or precision too large");
    format.remove_prefix(1);
    Value value;
    if (!take(value)) return false;
    if (!value.is_integral()) return fail("* wants int");
    if (value.as_integer() > kWidthMax || value.as_integer() < -kWidthMax)
      return fail("width or precision too large");
    amount = static_cast<int>(value.as_integer());
    return true;
  }

  bool read_spec(std::string_view& format, Spec& spec) {
    bool zero = false;
    for (; !format.empty(); format.remove_prefix(1)) {
      const char c = format[0];
      if (c == '-') {
        spec.align = '<';
      } else if (c == '+') {
        spec.sign = '+';
      } else if (c == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        zero = true;
      } else {
        break;
      }
    }
    if (!read_amount(format, spec.width)) return false;
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (!format.empty() && format[0] == '.') {
      format.remove_prefix(1);
      if (!read_amount(format, spec.precision)) return false;
      spec.precision = std::max(spec.precision, 0);
    }
    if (!format.empty() && (format[0] == 'h' || format[0] == 'l' || format[0] == 'L'))
      format.remove_prefix(1);
    if (format.empty()) return fail("incomplete format");
    spec.type = format[0];
    format.remove_prefix(1);
    const bool number = std::string_view("diuoxXeEfFgG").find(spec.type) != std::string_view::npos;
    if (zero && number && !spec.align) {
      spec.align = '=';
      spec.fill = "0";
    }
    if (!spec.align) spec.align = '>';
    return true;
  }

  bool convert(std::string_view& format) {
    Value value = Value::missing();
    if (!format.empty() && format[0] == '(' && !take_key(format, value)) return false;
    Spec spec;
    if (!read_spec(format, spec)) return false;
    if (spec.type == '%') return out_.add('%');
    if (value.is_missing() && !take(value)) return false;
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return add_text(value, spec);
      case 'c':
        return add_char(value, spec);
      case 'd':
      case 'i':
      case 'u':
        return add_int(value, spec);
      case 'o':
      case 'x':
      case 'X':
        if (!value.is_integral())
          return fail(message("%", std::string_view(&spec.type, 1),
                              " format: an integer is required, not ", type_name(value.type)));
        return out_.add(format_int(value.as_integer(), spec));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number())
          return fail(message("must be real number, not ", type_name(value.type)));
        return out_.add(format_float(value.as_double(), spec));
      default:
        return fail(
            message("unsupported format character '", std::string_view(&spec.type, 1), "'"));
    }
  }

  bool add_text(const Value& value, const Spec& spec) {
    TextBuilder text(rt_);
    if (spec.type == 's' ? !append_str(rt_, text, value) : !append_repr(rt_, text, value))
      return false;
    if (!markup_) return out_.add(format_text(text.view(), spec));
    const Value safe = escape_html(
        rt_, spec.type == 's' && value.is(Type::kStr) ? value : rt_.string(text.view()));
    return !safe.is_error() && out_.add(format_text(safe.text(), spec));
  }

  bool add_char(const Value& value, const Spec& spec) {
    std::string text;
    if (value.is_integral() && value.as_integer() >= 0 && value.as_integer() < 0x110000) {
      append_utf8(text, static_cast<char32_t>(value.as_integer()));
    } else if (value.is(Type::kStr) && value.str->length() == 1) {
      text = value.text();
    } else {
      return fail("%c requires int or char");
    }
    return out_.add(format_text(text, spec));
  }

  bool add_int(const Value& value, const Spec& spec) {
    if (value.is_integral()) return out_.add(format_int(value.as_integer(), spec));
    if (!value.is(Type::kFloat))
      return fail(message("%d format: a real number is required, not ", type_name(value.type)));
    if (!(std::fabs(value.number) < 0x1p63)) return fail("cannot convert float to integer");
    return out_.add(format_int(static_cast<int64_t>(value.number), spec));
  }

  Runtime& rt_;
  const Value& values_;
  bool markup_;
  TextBuilder out_;
  size_t next_ = 0;
  bool keyed_ = false;
};

// ---- str.format --------------------------------------------------------------------------------

// [[fill]align][sign][#][0][width][grouping][.precision][type]
bool parse_spec(std::string_view text, Spec& spec) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const size_t first = sequence_bytes(text[0]);
    if (text.size() > first && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      text.remove_prefix(first + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  const auto take = [&text](std::string_view any) {
    if (text.empty() || any.find(text[0]) == std::string_view::npos) return '\0';
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  if (take("0") && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  if (!read_number(text, spec.width)) return false;
  spec.grouping = take(",_");
  if (take(".")) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return false;
    if (!read_number(text, spec.precision)) return false;
  }
  if (!text.empty()) spec.type = take("bcdeEfFgGnosxX%");
  return text.empty();
}

bool append_formatted(Runtime& rt, TextBuilder& out, const Value& value, std::string_view text) {
  if (text.empty()) return append_str(rt, out, value);
  const auto refuse = [&rt, &value] {
    rt.fail("invalid format specification for a value of type '", type_name(value.type), "'");
    return false;
  };
  Spec spec;
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

  // At the text behind "{": takes it up to its "}".
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

Value format_percent(Runtime& rt, const Value& format, const Value& values) {
  return PercentFormatter(rt, values, format.str->markup).run(format.text());
}

Value format_braces(Runtime& rt, const Str& format, const Arguments& arguments) {
  TextBuilder out(rt);
  if (!BracesFormatter(rt, arguments, format.markup).run(format.view(), out, 1))
    return Value::error();
  return out.take(format.markup);
}

}  // namespace weir::text::jinja
