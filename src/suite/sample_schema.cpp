#include "suite/sample_schema.h"

#include <algorithm>
#include <array>

#include "suite/words.h"

namespace weir::suite {

namespace {

constexpr int32_t kDepthMax = 2;
constexpr int32_t kTextLength = 12, kItemsMax = 3;
constexpr std::array<std::string_view, 8> kNames = {"name",  "city",  "size",  "colour",
                                                    "items", "price", "level", "open"};

// Code points, by which a schema's maxLength counts. REQUIRES: valid UTF-8.
int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

SampleSchema SampleSchema::numbered(uint64_t number) {
  uint64_t state = number + 1;
  SampleSchema schema = make(state, kDepthMax);
  while (schema.kind != Kind::kObject) schema = make(state, kDepthMax);
  return schema;
}

SampleSchema SampleSchema::make(uint64_t& state, int32_t depth) {
  SampleSchema schema;
  schema.kind = static_cast<Kind>(pick(state, depth > 0 ? 0 : 2, 5));
  switch (schema.kind) {
    case Kind::kObject: {
      const int32_t first = pick(state, 0, static_cast<int32_t>(kNames.size()) - 1);
      const int32_t count = pick(state, 1, 4);
      for (int32_t i = 0; i < count; ++i)
        schema.members.emplace_back(kNames[static_cast<size_t>(first + i) % kNames.size()],
                                    make(state, depth - 1));
      break;
    }
    case Kind::kArray:
      schema.high = kItemsMax;
      schema.members.emplace_back("", make(state, 0));
      break;
    case Kind::kWord:
      for (int32_t i = pick(state, 2, 4); i > 0; --i)
        schema.words.push_back(suite::words(1, next_random(state)));
      break;
    case Kind::kText:
      schema.high = kTextLength;
      break;
    case Kind::kInteger:
      schema.low = pick(state, -20, 20);
      schema.high = schema.low + pick(state, 0, 500);
      break;
    case Kind::kTruth:
      break;
  }
  return schema;
}

void SampleSchema::write(JsonWriter& json) const {
  constexpr std::array<const char*, 6> kTypes = {"object", "array",   "string",
                                                 "string", "integer", "boolean"};
  json.begin_object().field("type", kTypes[static_cast<size_t>(kind)]);
  if (kind == Kind::kObject) {
    json.key("properties").begin_object();
    for (const auto& [name, member] : members) {
      json.key(name);
      member.write(json);
    }
    json.end_object().key("required").begin_array();
    for (const auto& member : members) json.value(member.first);
    json.end_array().field("additionalProperties", false);
  }
  if (kind == Kind::kArray) {
    json.key("items");
    members[0].second.write(json);
    json.field("maxItems", high);
  }
  if (kind == Kind::kWord) {
    json.key("enum").begin_array();
    for (const std::string& word : words) json.value(word);
    json.end_array();
  }
  if (kind == Kind::kText) json.field("maxLength", high);
  if (kind == Kind::kInteger) json.field("minimum", low).field("maximum", high);
  json.end_object();
}

std::string SampleSchema::fault(std::string_view text) const {
  const Result<JsonDoc> doc = JsonDoc::parse(text);
  return doc ? fault_at(doc->root(), "the root") : "no JSON: " + doc.error().message;
}

std::string SampleSchema::fault_at(JsonValue value, const std::string& where) const {
  const auto expected = [&](const std::string& what) {
    return "expected " + what + " at " + where + ", found " + json_excerpt(value);
  };
  std::string_view text;
  int64_t number = 0;
  bool truth = false;
  switch (kind) {
    case Kind::kObject: {
      JsonObject object;
      if (value.get(object) != simdjson::SUCCESS) return expected("an object");
      if (object.size() != members.size())
        return expected(std::to_string(members.size()) + " members");
      for (const auto& [name, member] : members) {
        JsonValue inner;
        if (object[name].get(inner) != simdjson::SUCCESS) return expected("a member " + name);
        if (std::string fault = member.fault_at(inner, name); !fault.empty()) return fault;
      }
      return {};
    }
    case Kind::kArray: {
      JsonArray array;
      if (value.get(array) != simdjson::SUCCESS || array.size() > static_cast<size_t>(high))
        return expected("an array of at most " + std::to_string(high));
      for (const JsonValue item : array)
        if (std::string fault = members[0].second.fault_at(item, where); !fault.empty())
          return fault;
      return {};
    }
    case Kind::kWord:
      return value.get(text) == simdjson::SUCCESS && std::ranges::find(words, text) != words.end()
                 ? ""
                 : expected("one of the words");
    case Kind::kText:
      return value.get(text) == simdjson::SUCCESS && characters(text) <= high
                 ? ""
                 : expected("a string of at most " + std::to_string(high));
    case Kind::kInteger:
      return value.get(number) == simdjson::SUCCESS && number >= low && number <= high
                 ? ""
                 : expected("an integer from " + std::to_string(low) + " to " +
                            std::to_string(high));
    case Kind::kTruth:
      return value.get(truth) == simdjson::SUCCESS ? "" : expected("true or false");
  }
  return {};
}

}  // namespace weir::suite
