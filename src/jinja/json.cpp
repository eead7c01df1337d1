// JSON in and out.
#include "jinja/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "jinja/codepoint.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

class JsonReader {
 public:
  // `copies`: strings are copied, the document may go.
  JsonReader(Runtime& rt, bool copies) : rt_(rt), copies_(copies) {}

  Value read(JsonValue json) {
    if (!rt_.charge()) return Value::error();
    switch (json.type()) {
      case JsonType::ARRAY:
        return read_array(json.get_array().value_unsafe());
      case JsonType::OBJECT:
        return read_object(json.get_object().value_unsafe());
      case JsonType::STRING:
        return read_string(json.get_string().value_unsafe());
      case JsonType::INT64:
        return Value::of(json.get_int64().value_unsafe());
      case JsonType::UINT64: {
        // simdjson says UINT64 for what int64 cannot hold.
        const Value digits = rt_.string(std::to_string(json.get_uint64().value_unsafe()));
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

 private:
  Value read_string(std::string_view text) { return copies_ ? rt_.string(text) : rt_.borrow(text); }

  Value read_array(JsonArray array) {
    ListBuilder list(rt_);
    for (const JsonValue item : array) {
      const Value value = read(item);
      if (value.is_error() || !list.add(value)) return Value::error();
    }
    return list.take();
  }

  Value read_object(JsonObject object) {
    Dict* dict = rt_.arena().make<Dict>();
    dict->reserve(rt_.arena(), object.size());
    for (const auto& field : object) {
      const Value value = read(field.value);
      if (value.is_error() || !rt_.charge_bytes(field.key.size())) return Value::error();
      dict->set(rt_.arena(), read_string(field.key), value);
    }
    return Value::of(Type::kDict, dict);
  }

  Runtime& rt_;
  bool copies_;
};

struct Style {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string_view indent;  // Of one level.
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};

// A character as \uXXXX, or two of them.
void append_unicode_escape(std::string& out, char32_t c) {
  char buffer[16];
  if (c < 0x10000) {
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
  } else {
    const unsigned high = 0xd800 + static_cast<unsigned>((c - 0x10000) >> 10);
    const unsigned low = 0xdc00 + static_cast<unsigned>((c - 0x10000) & 0x3ff);
    std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", high, low);
  }
  out += buffer;
}

// What stands for the character in JSON; empty for itself.
std::string escape_of(char32_t c, bool ensure_ascii) {
  static constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
  std::string out;
  if (c < 0x80 && kSpecial.find(static_cast<char>(c)) != std::string_view::npos) {
    out += '\\';
    out += kLetters[kSpecial.find(static_cast<char>(c))];
  } else if (c < 0x20 || (ensure_ascii && c >= 0x7f)) {
    append_unicode_escape(out, c);
  }
  return out;
}

bool append_escaped(TextBuilder& out, std::string_view text, bool ensure_ascii) {
  if (!out.add('"')) return false;
  const char* at = text.data();
  const char* end = at + text.size();
  const char* plain = at;  // Of what has not been added yet.
  while (at < end) {
    const char* start = at;
    const char32_t c = next_codepoint(at);
    if (c >= 0x20 && c != '"' && c != '\\' && (!ensure_ascii || c < 0x7f)) continue;
    if (!out.add({plain, static_cast<size_t>(start - plain)}) ||
        !out.add(escape_of(c, ensure_ascii)))
      return false;
    plain = at;
  }
  return out.add({plain, static_cast<size_t>(end - plain)}) && out.add('"');
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

Value value_of_json(Runtime& rt, const JsonDoc& doc) {
  return JsonReader(rt, false).read(doc.root());
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
  // simdjson's parser takes up to 16 bytes for each of the text, and has its own start-up costs.
  constexpr size_t kParserBytes = 16, kParserSteps = 50;
  if (!call.rt.reserve(kParserBytes * call.self.str->bytes) || !call.rt.charge(kParserSteps))
    return Value::error();
  const Result<JsonDoc> doc = JsonDoc::parse(call.self.text());
  if (!doc) return call.rt.fail("from_json: ", doc.error().message);
  return JsonReader(call.rt, true).read(doc->root());
}

}  // namespace weir::jinja
