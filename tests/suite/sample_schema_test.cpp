#include "suite/sample_schema.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::suite {
namespace {

using Kind = SampleSchema::Kind;

std::string written(const SampleSchema& schema) {
  std::string text;
  JsonWriter json(text);
  schema.write(json);
  return text;
}

SampleSchema sample() {
  SampleSchema list = {.kind = Kind::kArray, .high = 2};
  list.members.emplace_back("", SampleSchema{.kind = Kind::kTruth});
  SampleSchema schema = {.kind = Kind::kObject};
  schema.members.emplace_back("city", SampleSchema{.kind = Kind::kWord, .words = {"a", "b"}});
  schema.members.emplace_back("size", SampleSchema{.kind = Kind::kInteger, .low = -1, .high = 9});
  schema.members.emplace_back("name", SampleSchema{.kind = Kind::kText, .high = 3});
  schema.members.emplace_back("items", list);
  return schema;
}

TEST(SampleSchemas, AreWrittenAsJsonSchema) {
  EXPECT_EQ(written(sample()),
            R"({"type":"object","properties":{"city":{"type":"string","enum":["a","b"]},)"
            R"("size":{"type":"integer","minimum":-1,"maximum":9},)"
            R"("name":{"type":"string","maxLength":3},)"
            R"("items":{"type":"array","items":{"type":"boolean"},"maxItems":2}},)"
            R"("required":["city","size","name","items"],"additionalProperties":false})");
}

TEST(SampleSchemas, TakeWhatKeepsThem) {
  EXPECT_EQ(sample().fault(R"({"city": "b", "size": 9, "name": "äöü", "items": [true, false]})"),
            "");
  EXPECT_EQ(sample().fault(R"({"items": [], "name": "", "size": -1, "city": "a"})"), "");
}

TEST(SampleSchemas, NameWhatDoesNot) {
  for (const char* text :
       {"", "{", "[]", R"({"city": "b", "size": 9, "name": "abc"})",
        R"({"city": "c", "size": 9, "name": "abc", "items": []})",
        R"({"city": "b", "size": 10, "name": "abc", "items": []})",
        R"({"city": "b", "size": 9.5, "name": "abc", "items": []})",
        R"({"city": "b", "size": 9, "name": "abcd", "items": []})",
        R"({"city": "b", "size": 9, "name": "abc", "items": [true, true, true]})",
        R"({"city": "b", "size": 9, "name": "abc", "items": [1]})",
        R"({"city": "b", "size": 9, "name": "abc", "items": [], "more": 1})"})
    EXPECT_NE(sample().fault(text), "") << text;
}

TEST(SampleSchemas, AreTheSameForANumberAndManyInAll) {
  std::set<std::string> all;
  for (uint64_t i = 0; i < 200; ++i) {
    const SampleSchema schema = SampleSchema::numbered(i);
    EXPECT_EQ(schema.kind, Kind::kObject);
    const std::string text = written(schema);
    EXPECT_EQ(text, written(SampleSchema::numbered(i)));
    all.insert(text);
  }
  EXPECT_GT(all.size(), 150u);
}

}  // namespace
}  // namespace weir::suite
