#include "base/json.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace weir {

namespace {

// Four hexadecimal digits; -1 if they are none.
int32_t hex_code(std::string_view digits) {
  uint32_t code = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, code, 16);
  return digits.size() == 4 && read.ec == std::errc() && read.ptr == end
             ? static_cast<int32_t>(code)
             : -1;
}

// What is wrong with the escape at the beginning of `text`, a backslash and what follows; empty if
// nothing is. `bytes`: how many it takes.
std::string escape_fault(std::string_view text, size_t& bytes) {
  constexpr std::string_view kPlain = "\"\\/bfnrt";
  bytes = 2;
  if (text.size() >= 2 && kPlain.find(text[1]) != std::string_view::npos) return {};
  if (text.size() < 2 || text[1] != 'u') return "expected one of \"\\/bfnrtu after a backslash";
  const int32_t code = hex_code(text.substr(2, 4));
  if (code < 0) return "expected four hexadecimal digits after \\u";
  bytes = 6;
  const std::string found(text.substr(0, bytes));
  if (code >= 0xdc00 && code <= 0xdfff)
    return "expected a high surrogate (\\uD800 to \\uDBFF) before " + found;
  if (code < 0xd800 || code > 0xdbff) return {};
  const int32_t low = text.substr(6, 2) == "\\u" ? hex_code(text.substr(8, 4)) : -1;
  if (low < 0xdc00 || low > 0xdfff)
    return "expected a low surrogate (\\uDC00 to \\uDFFF) after " + found;
  bytes = 12;
  return {};
}

// The first wrong escape of a string, and where it is; empty if there is none.
std::string string_fault(std::string_view text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (!in_string || text[i] != '\\') continue;
    size_t bytes = 0;
    if (const std::string fault = escape_fault(text.substr(i), bytes); !fault.empty())
      return "byte " + std::to_string(i) + ": " + fault;
    i += bytes - 1;
  }
  return {};
}

}  // namespace

Result<JsonDoc> JsonDoc::parse(std::string_view text, size_t depth_max) {
  JsonDoc doc;
  doc.parser_ = std::make_unique<simdjson::dom::parser>();
  if (doc.parser_->allocate(std::max<size_t>(text.size(), 64), depth_max) != simdjson::SUCCESS)
    return fail(ErrorCode::kTooLarge,
                "no memory for a JSON document of " + std::to_string(text.size()) + " bytes");
  auto parsed = doc.parser_->parse(text.data(), text.size());
  if (parsed.error() != simdjson::SUCCESS) {
    std::string fault = parsed.error() == simdjson::STRING_ERROR ? string_fault(text) : "";
    if (fault.empty()) fault = simdjson::error_message(parsed.error());
    return fail(ErrorCode::kInvalid, "expected valid JSON: " + fault);
  }
  doc.root_ = parsed.value_unsafe();
  return doc;
}

const char* json_type_name(JsonValue value) {
  switch (value.type()) {
    case JsonType::ARRAY:
      return "array";
    case JsonType::OBJECT:
      return "object";
    case JsonType::INT64:
    case JsonType::UINT64:
      return "integer";
    case JsonType::DOUBLE:
      return "number";
    case JsonType::STRING:
      return "string";
    case JsonType::BOOL:
      return "boolean";
    case JsonType::NULL_VALUE:
      return "null";
  }
  return "?";
}

std::string json_excerpt(JsonValue value) {
  constexpr size_t kShownBytes = 80;
  std::string text = simdjson::minify(value);
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // Not within a character.
  return text.substr(0, end) + "...";
}

std::optional<JsonValue> json_get(JsonObject object, std::string_view key) {
  JsonValue found;
  if (object.at_key(key).get(found) != simdjson::SUCCESS) return std::nullopt;
  if (found.is_null()) return std::nullopt;
  return found;
}

namespace {

template <class T>
void append_number(std::string& out, T number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t plain = 0;  // Start of the run not yet copied.
  size_t i = 0;
  const auto flush = [&] { out.append(text.substr(plain, i - plain)); };
  while (i < text.size()) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\' && c < 0x80) {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const Utf8Front front = utf8_front(text.substr(i));
      if (front.kind == Utf8Front::Kind::kValid) {
        i += front.bytes;
        continue;
      }
    }
    flush();
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c >= 0x80) {
          out += kReplacementCharacter;
        } else {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        }
    }
    plain = ++i;
  }
  flush();
  out += '"';
}

void JsonWriter::separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }

JsonWriter& JsonWriter::value(int64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

JsonWriter& JsonWriter::value(JsonValue parsed) { return raw(simdjson::minify(parsed)); }

}  // namespace weir
