#include "base/json.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  std::string out;
  JsonWriter w(out);
  w.begin_object().field("a", 1).key("b").begin_array().value("x").value(true).null();
  w.begin_object().end_object().end_array().field("c", 0.5).end_object();
  EXPECT_EQ(out, R"({"a":1,"b":["x",true,null,{}],"c":0.5})");
}

TEST(JsonWriter, EscapesControlsAndReplacesInvalidUtf8) {
  std::string out;
  append_json_string(out, "q\"\\\n\x01\xc3\xa9\xff\xe2\x82");
  EXPECT_EQ(out, "\"q\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(JsonWriter, RefusesSurrogatesAndOverlongForms) {
  std::string out;
  append_json_string(out, "\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80");
  EXPECT_EQ(out.find('\xed'), std::string::npos);
  EXPECT_EQ(out.find('\xc0'), std::string::npos);
  EXPECT_EQ(out.find('\xf4'), std::string::npos);
}

TEST(JsonWriter, WritesNumbersThatReadBackEqual) {
  for (const double number : {0.1, -1.5e-300, 3.0, 123456789.123}) {
    std::string out;
    JsonWriter(out).value(number);
    EXPECT_EQ(std::stod(out), number) << out;
  }
  std::string out;
  JsonWriter(out).value(std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "null");
}

TEST(JsonDoc, ReadsAndRefuses) {
  const auto doc = JsonDoc::parse(R"({"a":{"b":[1,2.5,"s"]},"n":null})");
  ASSERT_TRUE(doc);
  const JsonObject root = doc->root();
  EXPECT_TRUE(json_get(root, "a"));
  EXPECT_FALSE(json_get(root, "n")) << "an explicit null means absent";
  EXPECT_FALSE(json_get(root, "zz"));
  for (const char* bad : {"{", "[1,]", "{\"a\":1,}", "\"\xff\"", "1 2", ""})
    EXPECT_FALSE(JsonDoc::parse(bad)) << bad;
  std::string deep(2000, '[');
  EXPECT_FALSE(JsonDoc::parse(deep + std::string(2000, ']')));
}

TEST(JsonDoc, SaysWhichEscapeIsWrongAndWhere) {
  const auto message = [](std::string_view text) {
    const auto doc = JsonDoc::parse(text);
    return doc ? std::string("none") : doc.error().message;
  };
  EXPECT_EQ(message(R"({"text":"a \\ud83d"})"), "none") << "a backslash, and text";
  EXPECT_EQ(message(R"({"text":"\ud83d\ude00 \u00e9 \n"})"), "none");
  EXPECT_EQ(message(R"(["\"\ud83d\ude00"])"), "none");
  EXPECT_EQ(
      message(R"({"text":"abc \ud83d"})"),
      R"(expected valid JSON: byte 13: expected a low surrogate (\uDC00 to \uDFFF) after \ud83d)");
  EXPECT_EQ(
      message(R"(["\ud83d\ude00\uD83D\u0041"])"),
      R"(expected valid JSON: byte 14: expected a low surrogate (\uDC00 to \uDFFF) after \uD83D)");
  EXPECT_EQ(
      message(R"(["\\", "\ude00"])"),
      R"(expected valid JSON: byte 8: expected a high surrogate (\uD800 to \uDBFF) before \ude00)");
  EXPECT_EQ(message(R"(["\u12g4"])"),
            R"(expected valid JSON: byte 2: expected four hexadecimal digits after \u)");
  EXPECT_EQ(message(R"(["\x41"])"),
            R"(expected valid JSON: byte 2: expected one of "\/bfnrtu after a backslash)");
}

}  // namespace
}  // namespace weir
