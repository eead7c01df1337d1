// JSON in and out.
#include "text/jinja/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/json.h"
#include "text/jinja/codepoint.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"
#include "text/jinja/repr.h"

namespace weir::text::jinja {

namespace {

Value from_json_value(Runtime& rt, JsonValue json);

Value from_array(Runtime& rt, JsonArray array) {
  // simdjson's size() saturates at 2^24 - 1; the list is built without trusting it.
  ListBuilder list(rt);
  for (const JsonValue item : array) {
    const Value value = from_json_value(rt, item);
    if (value.is_error() || !list.add(value)) return Value::error();
  }
  return list.take();
}

Value from_object(Runtime& rt, JsonObject object) {
  Dict* dict = rt.arena().make<Dict>();
  dict->reserve(rt.arena(), object.size());
  for (const auto& field : object) {
    const Value value = from_json_value(rt, field.value);
    if (value.is_error() || !rt.charge()) return Value::error();
    dict->set(rt.arena(), rt.borrow(field.key), value);
  }
  return Value::of(Type::kDict, dict);
}

Value from_json_value(Runtime& rt, JsonValue json) {
  if (!rt.charge()) return Value::error();
  switch (json.type()) {
    case JsonType::ARRAY:
      return from_array(rt, json.get_array().value_unsafe());
    case JsonType::OBJECT:
      return from_object(rt, json.get_object().value_unsafe());
    case JsonType::STRING:
      return rt.borrow(json.get_string().value_unsafe());
    case JsonType::INT64:
      return Value::of(json.get_int64().value_unsafe());
    case JsonType::UINT64: {
      // simdjson says UINT64 for what int64 cannot hold.
      const Value digits = rt.string(std::to_string(json.get_uint64().value_unsafe()));
      return Value::of(Type::kBigInt, digits.str);
    }
    case JsonType::DOUBLE:
      return Value::of(json.get_double().value_unsafe());
    case JsonType::BOOL:
      return Value::of(json.get_bool().value_unsafe());
    case JsonType::NULL_VALUE:
      return Value::none();
  }
  return Value::error();
}

struct Style {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string_view indent;  // Of one level.
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};

bool append_escaped(TextBuilder& out, std::string_view text, bool ensure_ascii) {
  std::string escaped = "\"";
  const char* at = text.data();
  const char* end = at + text.size();
  char buffer[16];
  while (at < end) {
    const char* start = at;
    const char32_t c = next_codepoint(at);
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += static_cast<char>(c);
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\r') {
      escaped += "\\r";
    } else if (c == '\t') {
      escaped += "\\t";
    } else if (c == '\f') {
      escaped += "\\f";
    } else if (c == '\b') {
      escaped += "\\b";
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7f && c < 0x10000)) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
      escaped += buffer;
    } else if (ensure_ascii && c >= 0x10000) {
      const unsigned high = 0xd800 + static_cast<unsigned>((c - 0x10000) >> 10);
      const unsigned low = 0xdc00 + static_cast<unsigned>((c - 0x10000) & 0x3ff);
      std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", high, low);
      escaped += buffer;
    } else {
      escaped.append(start, at);
    }
  }
  escaped += '"';
  return out.add(escaped);
}

// Writes one value; holds what stays the same through the recursion.
class JsonText {
 public:
  JsonText(Runtime& rt, const Style& style, TextBuilder& out) : rt_(rt), style_(style), out_(out) {}

  bool add(const Value& value, int depth) {
    if (!rt_.charge()) return false;
    if (depth > kNestingMax) {
      rt_.fail("maximum recursion depth exceeded while encoding JSON");
      return false;
    }
    switch (value.type) {
      case Type::kStr:
        return append_escaped(out_, value.text(), style_.ensure_ascii);
      case Type::kNone:
        return out_.add("null");
      case Type::kBool:
        return out_.add(value.boolean ? "true" : "false");
      case Type::kFloat:
        return out_.add(float_text(value.number));
      case Type::kInt:
      case Type::kBigInt:
        return append_str(rt_, out_, value);
      case Type::kList:
      case Type::kTuple:
        return add_list(*value.list, depth);
      case Type::kDict:
        return add_dict(*value.dict, depth);
      default:
        rt_.fail("Object of type ", type_name(value.type), " is not JSON serializable");
        return false;
    }
  }

 private:
  static std::string float_text(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_repr(number);
  }

  bool line(int depth) {
    if (!style_.indented) return true;
    return out_.add('\n') && out_.fill(style_.indent, static_cast<size_t>(depth));
  }

  bool add_list(const List& list, int depth) {
    if (list.size == 0) return out_.add("[]");
    if (!out_.add('[')) return false;
    for (size_t i = 0; i < list.size; ++i)
      if ((i > 0 && !out_.add(style_.item_separator)) || !line(depth + 1) ||
          !add(list.items[i], depth + 1))
        return false;
    return line(depth) && out_.add(']');
  }

  bool add_key(const Value& key) {
    switch (key.type) {
      case Type::kStr:
        return append_escaped(out_, key.text(), style_.ensure_ascii);
      case Type::kNone:
        return out_.add("\"null\"");
      case Type::kBool:
        return out_.add(key.boolean ? "\"true\"" : "\"false\"");
      case Type::kFloat:
        return out_.add('"') && out_.add(float_text(key.number)) && out_.add('"');
      case Type::kInt:
      case Type::kBigInt:
        return out_.add('"') && append_str(rt_, out_, key) && out_.add('"');
      default:
        rt_.fail("keys must be str, int, float, bool or None, not ", type_name(key.type));
        return false;
    }
  }

  bool add_dict(const Dict& dict, int depth) {
    if (dict.size() == 0) return out_.add("{}");
    std::vector<Entry> entries(dict.entries().begin(), dict.entries().end());
    if (style_.sort_keys) {
      bool fine = true;
      std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        bool result = false;
        fine = fine && less(rt_, a.key, b.key, result);
        return fine && result;
      });
      if (!fine) return false;
    }
    if (!out_.add('{')) return false;
    for (size_t i = 0; i < entries.size(); ++i)
      if ((i > 0 && !out_.add(style_.item_separator)) || !line(depth + 1) ||
          !add_key(entries[i].key) || !out_.add(style_.key_separator) ||
          !add(entries[i].value, depth + 1))
        return false;
    return line(depth) && out_.add('}');
  }

  Runtime& rt_;
  const Style& style_;
  TextBuilder& out_;
};

// indent=: spaces, or the text itself; separators=: a pair of strings.
bool read_style(const Call& call, Style& style) {
  style.ensure_ascii = call.has(0) && truthy(call[0]);
  style.sort_keys = call.has(3) && truthy(call[3]);
  if (call.has(1) && !call[1].is(Type::kNone)) {
    style.indented = true;
    style.item_separator = ",";
    if (call[1].is(Type::kStr)) {
      style.indent = call[1].text();
    } else {
      int64_t width = 0;
      if (!to_int(call, call[1], width)) return false;
      TextBuilder spaces(call.rt);
      if (!spaces.fill(" ", static_cast<size_t>(std::max<int64_t>(width, 0)))) return false;
      const Value text = spaces.take();
      if (text.is_error()) return false;
      style.indent = text.text();
    }
  }
  if (!call.has(2) || call[2].is(Type::kNone)) return true;
  const Value& pair = call[2];
  if (!pair.is_sequence() || pair.list->size != 2 || !pair.list->items[0].is(Type::kStr) ||
      !pair.list->items[1].is(Type::kStr)) {
    call.rt.fail("tojson expected separators to be a pair of strings");
    return false;
  }
  style.item_separator = pair.list->items[0].text();
  style.key_separator = pair.list->items[1].text();
  return true;
}

}  // namespace

Value read_json(Runtime& rt, std::string_view text, const char* what) {
  Result<JsonDoc> doc = JsonDoc::parse(text);
  if (!doc) return rt.fail(what, ": ", doc.error().message);
  const auto kept = std::make_shared<JsonDoc>(std::move(*doc));
  rt.keep(kept);
  return from_json_value(rt, kept->root());
}

Value filter_tojson(const Call& call) {
  Style style;
  if (!read_style(call, style)) return Value::error();
  TextBuilder out(call.rt);
  if (!JsonText(call.rt, style, out).add(call.self, 0)) return Value::error();
  return out.take();
}

Value filter_from_json(const Call& call) {
  if (!call.self.is(Type::kStr))
    return call.rt.fail("from_json expected a string, found ", type_name(call.self.type));
  if (!call.rt.reserve(2 * call.self.str->bytes)) return Value::error();
  return read_json(call.rt, call.self.text(), "from_json");
}

}  // namespace weir::text::jinja
