// Random JSON Schemas for tests: those that a person might write, and those meant to hurt.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace weir::grammar {

class SchemaGenerator {
 public:
  explicit SchemaGenerator(unsigned seed) : random_(seed) {}

  // A schema with a few definitions, some of them recursive.
  std::string schema() {
    definitions_ = pick(3);
    std::string text = object_with(any(3));
    if (definitions_ == 0) return text;
    std::string definitions;
    for (int i = 0; i < definitions_; ++i)
      definitions += (i ? "," : "") + quoted("d" + std::to_string(i)) + ":" + anchored(any(2), i);
    return text.substr(0, text.size() - 1) + (text.size() > 2 ? "," : "") + "\"$defs\":{" +
           definitions + "}}";
  }

  // Deep, huge, contradictory, recursive, catastrophic.
  std::string hostile() {
    switch (pick(20)) {
      case 15:
        return nested(pick(2) ? "{\"not\":" : "{\"if\":", 60, any(1))
            .insert(1, conditions(20) + ",");
      case 16:
        return "{\"allOf\":[" +
               nested("{\"oneOf\":[{\"required\":[\"a\"]},", 25, "{\"required\":[\"b\"]}", "]}") +
               "]}";
      case 17:
        return "{\"type\":\"object\",\"not\":{\"anyOf\":[" + forbidden_pairs(200) + "]}}";
      case 18:
        return "{\"type\":\"array\",\"uniqueItems\":true,\"items\":" + wide("enum") + "}";
      case 0:
        return nested("{\"items\":", pick(2) ? 60 : 5000, "{}");
      case 1:
        return nested("{\"anyOf\":[", 50 + pick(100), "{}", "]}");
      case 2:
        return wide("enum");
      case 3:
        return wide("properties");
      case 4:
        return cross_product();
      case 5:
        return "{\"$ref\":\"#\"}";
      case 6:
        return "{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}";
      case 7:
        return "{\"pattern\":" + quoted(catastrophe()) + "}";
      case 8:
        return "{\"type\":\"string\",\"minLength\":" + number() + ",\"maxLength\":" + number() +
               ",\"pattern\":" + quoted(catastrophe()) + "}";
      case 9:
        return "{\"type\":\"array\",\"minItems\":" + number() + ",\"maxItems\":" + number() +
               ",\"items\":" + any(2) + "}";
      case 10:
        return "{\"type\":\"number\",\"minimum\":" + number() + ",\"maximum\":-" + number() +
               ",\"multipleOf\":" + number() + "}";
      case 11:
        return "{\"minProperties\":" + number() + ",\"maxProperties\":" + number() +
               ",\"properties\":" + properties(40) + "}";
      case 12:
        return doubling();
      case 13:
        return mutated(schema());
      case 14:
        return "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"}]},"
               "\"b\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}]}}}";
      default:
        return bushes();
    }
  }

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  }
  static std::string anchored(const std::string& schema, int number) {
    const std::string object = object_with(schema);
    return "{\"$anchor\":\"a" + std::to_string(number) + "\"" + (object == "{}" ? "" : ",") +
           object.substr(1);
  }
  static std::string object_with(std::string text) { return text == "true" ? "{}" : text; }
  std::string name() {
    static const char* const names[] = {
        "name", "type", "a", "b", "the \\\"x\\\"", "id", "ab", "caf\xc3\xa9", "long_property_name"};
    return "\"" + std::string(names[pick(9)]) + "\"";
  }

  std::string any(int depth) {
    const int kind = depth <= 0 ? pick(7) : pick(14);
    switch (kind) {
      case 0:
        return string();
      case 1:
        return integer();
      case 2:
        return fraction();
      case 3:
        return pick(2) ? "{\"type\":\"boolean\"}" : "{\"type\":[\"null\",\"integer\"]}";
      case 4:
        return "{\"enum\":[" + constant() + "," + constant() + "," + constant() + "]}";
      case 5:
        return "{\"const\":" + constant() + "}";
      case 6:
        return pick(4) ? reference() : "true";
      case 7:
      case 8:
      case 9:
        return object(depth);
      case 10:
      case 11:
        return array(depth);
      case 12:
        return either(depth);
      default:
        return "{\"allOf\":[" + any(depth - 1) + "," + any(depth - 1) + "]}";
    }
  }

  std::string either(int depth) {
    switch (pick(5)) {
      case 0:
        return "{\"oneOf\":[" + any(depth - 1) + "," + any(0) + "]}";
      case 1:
        return "{\"not\":" + any(pick(2)) + "}";
      case 2:
        return "{\"if\":" + any(0) + ",\"then\":" + any(depth - 1) + ",\"else\":" + any(0) + "}";
      default:
        return "{\"anyOf\":[" + any(depth - 1) + "," + any(depth - 1) + "]}";
    }
  }

  // What an object may be told beside its members.
  std::string condition() {
    const std::string is = "{\"properties\":{" + name() + ":{\"const\":" + constant() + "}}}";
    switch (pick(5)) {
      case 0:
        return ",\"not\":{\"required\":[" + name() + "," + name() + "]}";
      case 1:
        return ",\"oneOf\":[{\"required\":[" + name() + "]},{\"required\":[" + name() + "]}]";
      case 2:
        return ",\"if\":" + is + ",\"then\":{\"required\":[" + name() + "]}";
      case 3:
        return ",\"propertyNames\":{\"enum\":[" + name() + "," + name() + ",\"zz\"]}";
      default:
        return ",\"unevaluatedProperties\":false";
    }
  }

  // Recursion that need not end goes by way of an array or an optional property.
  std::string reference() {
    if (definitions_ == 0) return "{\"type\":\"null\"}";
    const std::string to = pick(2) ? "#/$defs/d" : "#a";
    const std::string ref = "{\"$ref\":\"" + to + std::to_string(pick(definitions_)) + "\"}";
    return pick(2) ? "{\"type\":\"array\",\"items\":" + ref + "}"
                   : "{\"type\":\"object\",\"properties\":{\"next\":" + ref + "}}";
  }

  std::string string() {
    static const char* const patterns[] = {"^[a-c]+$", "^(ab|cd)*$", "x",  "^\\\\d{2,4}$",
                                           "[0-9]$",   "^a[b-d]c$",  "^$", "^[^\\\"]+$"};
    if (pick(8) == 0) return "{\"type\":\"string\",\"not\":{\"enum\":[" + name() + ",\"\"]}}";
    switch (pick(5)) {
      case 0:
        return "{\"type\":\"string\"}";
      case 1:
        return "{\"type\":\"string\",\"maxLength\":" + std::to_string(pick(20)) + "}";
      case 2:
        return "{\"type\":\"string\",\"minLength\":" + std::to_string(pick(4)) +
               ",\"maxLength\":" + std::to_string(3 + pick(500)) + "}";
      case 3:
        return "{\"type\":\"string\",\"pattern\":\"" + std::string(patterns[pick(8)]) + "\"}";
      default:
        return "{\"type\":\"string\",\"maxLength\":7,\"pattern\":\"" +
               std::string(patterns[pick(8)]) + "\"}";
    }
  }

  std::string integer() {
    std::string text = "{\"type\":\"integer\"";
    const int low = pick(400) - 200;
    if (pick(2)) text += ",\"minimum\":" + std::to_string(low);
    if (pick(2)) text += ",\"exclusiveMaximum\":" + std::to_string(low + pick(3000));
    if (pick(4) == 0) text += ",\"multipleOf\":" + std::to_string(1 + pick(12));
    return text + "}";
  }

  std::string fraction() {
    std::string text = "{\"type\":\"number\"";
    const int low = pick(400) - 200;
    if (pick(2)) text += ",\"exclusiveMinimum\":" + std::to_string(low) + ".25";
    if (pick(2)) text += ",\"maximum\":" + std::to_string(low + pick(30)) + ".5";
    if (pick(5) == 0) text += ",\"multipleOf\":0.25";
    return text + "}";
  }

  std::string constant() {
    switch (pick(7)) {
      case 0:
        return "null";
      case 1:
        return "true";
      case 2:
        return std::to_string(pick(300) - 100);
      case 3:
        return std::to_string(pick(30)) + ".5";
      case 4:
        return name();
      case 5:
        return "[1,{\"a\":null}]";
      default:
        return "{\"b\":[],\"a\":\"x\\ny\"}";
    }
  }

  std::string properties(int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      text += std::string(i ? "," : "") + "\"p" + std::to_string(i) + "\":" + any(0);
    return text + "}";
  }

  std::string object(int depth) {
    std::vector<std::string> names;
    std::string members;
    for (int i = pick(4); i > 0; --i) {
      const std::string key = name();
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      names.push_back(key);
      members += (members.empty() ? "" : ",") + key + ":" + any(depth - 1);
    }
    std::string text = "{\"type\":\"object\",\"properties\":{" + members + "}";
    std::string required;
    for (const std::string& key : names)
      if (pick(2)) required += (required.empty() ? "" : ",") + key;
    if (!required.empty()) text += ",\"required\":[" + required + "]";
    if (pick(3) == 0) {
      const std::string key = name();
      text += ",\"dependentRequired\":{" + key + ":[" + name() + "]";
      if (key != "\"id\"") text += ",\"id\":[" + name() + "," + name() + "]";
      text += "}";
    }
    switch (pick(5)) {
      case 0:
        text += ",\"additionalProperties\":false";
        break;
      case 1:
        text += ",\"additionalProperties\":" + any(depth - 1);
        break;
      case 2:
        text += ",\"patternProperties\":{\"^x\":" + any(0) + "}";
        break;
      default:
        break;
    }
    if (pick(3) == 0) text += condition();
    if (pick(6) == 0) text += ",\"minProperties\":1";
    if (pick(6) == 0) text += ",\"maxProperties\":" + std::to_string(1 + pick(4));
    return text + "}";
  }

  std::string array(int depth) {
    std::string text = "{\"type\":\"array\"";
    if (pick(6) == 0)
      return text + ",\"uniqueItems\":true,\"items\":{\"enum\":[" + constant() + "," + constant() +
             "," + constant() + "]}}";
    if (pick(6) == 0) text += ",\"contains\":" + any(0);
    if (pick(3)) text += ",\"items\":" + any(depth - 1);
    if (pick(3) == 0) text += ",\"prefixItems\":[" + any(depth - 1) + "," + any(depth - 1) + "]";
    if (pick(2)) text += ",\"minItems\":" + std::to_string(pick(3));
    if (pick(2)) text += ",\"maxItems\":" + std::to_string(2 + pick(5));
    return text + "}";
  }

  std::string number() {
    static const char* const numbers[] = {"0",      "1",      "7",     "1000",
                                          "100000", "1e9",    "1e300", "2147483647",
                                          "0.1",    "1e-300", "-5",    "123456789012345678"};
    return numbers[pick(12)];
  }
  std::string catastrophe() {
    static const char* const patterns[] = {"(a+)+$",
                                           "(a|a)*b",
                                           "(a|b)*a(a|b){40}",
                                           "((a{0,900}){0,900}){0,900}",
                                           "(.*a){30}",
                                           "^(([a-z])+.)+[A-Z]",
                                           "(x?){5000}x{5000}",
                                           "^.{0,100000}$",
                                           "[^a]{500}b|c{70000}"};
    return patterns[pick(9)];
  }
  static std::string nested(const std::string& open, int depth, const std::string& core,
                            const std::string& close = "}") {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += core;
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  }
  // Each is a choice of its own.
  std::string conditions(int count) {
    std::string text = "\"allOf\":[{}";
    for (int i = 0; i < count; ++i)
      text += ",{\"if\":{\"properties\":{\"k" + std::to_string(pick(9)) +
              "\":{\"const\":1}}},\"then\":{\"required\":[\"r" + std::to_string(i) + "\"]}}";
    return text + "]";
  }
  std::string forbidden_pairs(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += std::string(i ? "," : "") + "{\"required\":[\"k" + std::to_string(pick(30)) +
              "\",\"k" + std::to_string(pick(30)) + "\"]}";
    return text;
  }
  std::string wide(const std::string& keyword) {
    const int count = 1000 << pick(6);
    std::string text = "{\"" + keyword + "\":" + (keyword == "enum" ? "[" : "{");
    for (int i = 0; i < count; ++i) {
      const std::string word = "\"w" + std::to_string(i * 7919) + "\"";
      text += (i ? "," : "") + word +
              (keyword == "enum" ? "" : ":{\"type\":\"string\",\"maxLength\":50}");
    }
    return text + (keyword == "enum" ? "]}" : "}}");
  }
  std::string cross_product() {
    std::string group = "{\"anyOf\":[";
    for (int i = 0; i < 8; ++i)
      group += std::string(i ? "," : "") + "{\"required\":[\"k" + std::to_string(pick(99)) + "\"]}";
    group += "]}";
    std::string text = "{\"allOf\":[" + group;
    for (int i = 0; i < 12; ++i) text += "," + group;
    return text + "]}";
  }
  // Each definition is two of the one before.
  std::string doubling() {
    std::string text = "{\"$ref\":\"#/$defs/d40\",\"$defs\":{\"d0\":{\"type\":\"string\"}";
    for (int i = 1; i <= 40; ++i) {
      const std::string before = "{\"$ref\":\"#/$defs/d" + std::to_string(i - 1) + "\"}";
      text += ",\"d" + std::to_string(i) + "\":{\"prefixItems\":[" + before + "," + before +
              "],\"minItems\":" + std::to_string(pick(3)) + "}";
    }
    return text + "}}";
  }
  // Many objects that differ late, each holding more of them.
  std::string bushes() {
    std::string text = "{\"anyOf\":[";
    for (int i = 0; i < 100; ++i)
      text += std::string(i ? "," : "") +
              "{\"type\":\"object\",\"properties\":{\"child\":{\"$ref\":\"#\"},\"k" +
              std::to_string(i) + "\":{\"type\":\"string\"}},\"required\":[\"child\",\"k" +
              std::to_string(i) + "\"]}";
    return text + ",{\"type\":\"null\"}]}";
  }
  std::string mutated(std::string text) {
    for (int i = 1 + pick(4); i > 0; --i) {
      const auto at = static_cast<size_t>(pick(static_cast<int>(text.size())));
      switch (pick(3)) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text[at] = static_cast<char>(pick(128));
          break;
        default:
          text.insert(at, text.substr(at / 2, 9));
          break;
      }
      if (text.empty()) text = "{}";
    }
    return text;
  }

  std::mt19937 random_;
  int definitions_ = 0;
};

}  // namespace weir::grammar
