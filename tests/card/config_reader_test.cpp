// One reader for all JSON beside the weights: what each getter takes, and how its first error
// reads. Families' use of it is tests/model/config_test.cpp's.
#include "card/config_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace weir::card {
namespace {

TEST(ConfigReader, ReadsWhatPythonWritesForInfinityAndNaN) {
  const auto doc =
      parse_config(R"({"a":[0.0,Infinity,-Infinity],"b":NaN,"c":"Infinity \"NaN\" \\","d":NaN})");
  ASSERT_TRUE(doc) << doc.error().message;
  const ConfigReader reader(doc->root());
  EXPECT_GT(reader.floats("a")[1], 1e38f);
  EXPECT_FALSE(reader.has("b"));
  EXPECT_EQ(reader.string_or("c", ""), "Infinity \"NaN\" \\");
  EXPECT_FALSE(parse_config("{\"a\":Infinit}"));
}

// The first error of a reader of `json`, which is the object "at" of f.json.
std::string error_of(std::string_view json, const std::function<void(const ConfigReader&)>& read) {
  const auto doc = JsonDoc::parse(json);
  EXPECT_TRUE(doc) << doc.error().message;
  const ConfigReader reader(doc->root(), "f.json", "at.");
  read(reader);
  const Result<void> status = reader.status();
  return status ? "" : status.error().message;
}

TEST(ConfigReader, NamesFileKeyExpectedAndFoundOnce) {
  const auto number = [](const ConfigReader& c) { c.number("n", 0, 1.5); };
  EXPECT_EQ(error_of(R"({"n":2})", number),
            "f.json: 'at.n': expected a number from 0 to 1.5, found 2");
  EXPECT_EQ(error_of(R"({"n":true})", number),
            "f.json: 'at.n': expected a number from 0 to 1.5, found true");
  EXPECT_EQ(error_of(R"({"n":null})", number), "");
  EXPECT_EQ(error_of(R"({"a":[1,-1]})", [](const ConfigReader& c) { c.ints("a", 0); }),
            "f.json: 'at.a': expected integers from 0 to 2147483647, found -1");
  EXPECT_EQ(error_of(R"({"s":[1]})", [](const ConfigReader& c) { c.strings("s"); }),
            "f.json: 'at.s': expected strings, found 1");
  EXPECT_EQ(error_of(R"({"o":{"b":1},"c":2})",
                     [](const ConfigReader& c) {
                       c.child("o")->bool_or("b", false);
                       c.bool_or("c", false);
                     }),
            "f.json: 'at.o.b': expected true or false, found 1")
      << "the first, also of a child";
}

TEST(ConfigReader, ReadsNothingOfWhatIsNoObject) {
  EXPECT_EQ(error_of("[1]",
                     [](const ConfigReader& c) {
                       EXPECT_FALSE(c.has("a") || c.is_null("a") || c.value("a"));
                       EXPECT_EQ(c.int_or("a", 7), 7);
                       EXPECT_TRUE(c.keys().empty());
                     }),
            "f.json: 'at': expected an object, found array");
}

TEST(ConfigReader, AssumesARequiredIntegerOnlyWhereItIsLeftOut) {
  const auto doc = JsonDoc::parse(R"({"o":{"a":3,"b":null}})");
  ASSERT_TRUE(doc) << doc.error().message;
  const ConfigReader reader(doc->root());
  for (const char* key : {"a", "b", "c"}) reader.child("o")->assume(key, 7);
  EXPECT_EQ(reader.child("o")->require_int("a"), 3);
  EXPECT_EQ(reader.child("o")->require_int("b"), 7);
  EXPECT_EQ(reader.child("o")->require_int("c"), 7);
  EXPECT_TRUE(reader.finish()) << reader.finish().error().message;
  reader.require_int("c");
  EXPECT_EQ(reader.status().error().message,
            "config.json: 'c': expected an integer, found nothing");
}

TEST(ConfigReader, ListsOnlyAsManyKeysAsCanBeLookedUp) {
  std::string json = "{\"k0\":0";
  for (size_t i = 1; i <= ConfigReader::kKeysMax; ++i) json += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(error_of(json + "}", [](const ConfigReader& c) { EXPECT_TRUE(c.keys().empty()); }),
            "f.json: 'at': expected at most 1000 keys, found 1001");
}

TEST(ConfigReader, TakesASingleValueForAList) {
  const auto doc = JsonDoc::parse(R"({"one":3,"two":[1,2],"word":"w"})");
  const ConfigReader reader(doc->root());
  EXPECT_EQ(reader.ints("one"), std::vector<int>{3});
  EXPECT_EQ(reader.ints("two"), (std::vector<int>{1, 2}));
  EXPECT_EQ(reader.strings("word"), std::vector<std::string>{"w"});
  EXPECT_EQ(reader.keys(), (std::vector<std::string_view>{"one", "two", "word"}));
}

}  // namespace
}  // namespace weir::card
