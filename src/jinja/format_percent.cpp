// The % operator of strings.
#include <algorithm>
#include <cmath>

#include "base/concat.h"
#include "base/utf8.h"
#include "jinja/codepoint.h"
#include "jinja/format.h"
#include "jinja/format_spec.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

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
    if (!rt_.charge_bytes(key.size())) return false;
    const Value* found = values_.dict->find(key);
    if (!found) return fail(concat({"no key '", key, "' for the format string"}));
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

  bool read_spec(std::string_view& format, FormatSpec& spec) {
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
    FormatSpec spec;
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
          return fail(concat({"%", std::string_view(&spec.type, 1),
                              " format: an integer is required, not ", type_name(value.type)}));
        return out_.add(format_int(value.as_integer(), spec));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number())
          return fail(concat({"must be real number, not ", type_name(value.type)}));
        return out_.add(format_float(value.as_double(), spec));
      default:
        return fail(
            concat({"unsupported format character '", std::string_view(&spec.type, 1), "'"}));
    }
  }

  bool add_text(const Value& value, const FormatSpec& spec) {
    TextBuilder text(rt_);
    if (spec.type == 's' ? !append_str(rt_, text, value) : !append_repr(rt_, text, value))
      return false;
    if (!markup_) return out_.add(format_text(text.view(), spec));
    const Value safe = escape_html(
        rt_, spec.type == 's' && value.is(Type::kStr) ? value : rt_.string(text.view()));
    return !safe.is_error() && out_.add(format_text(safe.text(), spec));
  }

  bool add_char(const Value& value, const FormatSpec& spec) {
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

  bool add_int(const Value& value, const FormatSpec& spec) {
    if (value.is_integral()) return out_.add(format_int(value.as_integer(), spec));
    if (!value.is(Type::kFloat))
      return fail(concat({"%d format: a real number is required, not ", type_name(value.type)}));
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

}  // namespace

Value format_percent(Runtime& rt, const Value& format, const Value& values) {
  return PercentFormatter(rt, values, format.str->markup).run(format.text());
}

}  // namespace weir::jinja
