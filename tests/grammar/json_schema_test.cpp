// JSON Schemas: what each keyword allows and forbids, what is refused and how, and random schemas
// whose random outputs an independent validator accepts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/utf8.h"
#include "grammar/parts.h"
#include "grammar/source.h"
#include "json_validator.h"
#include "matching.h"
#include "random_walk.h"
#include "schema_generator.h"

namespace weir::grammar {
namespace {

Result<std::shared_ptr<const Automaton>> compiled_schema(std::string schema) {
  WEIR_ASSIGN(auto automaton, compile(GrammarSource{.kind = GrammarSource::Kind::kJsonSchema,
                                                    .text = std::move(schema),
                                                    .choices = {}}));
  return std::shared_ptr<const Automaton>(std::move(automaton));
}

struct Sample {
  const char* schema;
  std::vector<std::string> yes, no;
};

void expect_samples(std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    const auto automaton = compiled_schema(sample.schema);
    ASSERT_TRUE(automaton) << sample.schema << ": " << automaton.error().message;
    for (const std::string& text : sample.yes)
      EXPECT_TRUE(matches(*automaton, text)) << sample.schema << " on " << text;
    for (const std::string& text : sample.no)
      EXPECT_FALSE(matches(*automaton, text)) << sample.schema << " on " << text;
  }
}

TEST(JsonSchema, ScalarsAreWhatTheirTypeSays) {
  const Sample samples[] = {
      {R"({"type":"null"})", {"null"}, {"0", "\"null\"", ""}},
      {R"({"type":"boolean"})", {"true", "false"}, {"True", "1"}},
      {R"({"type":"integer"})",
       {"0", "-17", "123456789012345678"},
       {"1.5", "01", "+1", "1e2", "1234567890123456789"}},
      {R"({"type":"number"})", {"0", "-0.5", "1e5", "12.75E-3"}, {".5", "1.", "00", "1e999"}},
      {R"({"type":"string"})",
       {R"("")", R"("a\n\u00e9\"")", "\"caf\xc3\xa9\"", R"("\ud83e\udd9c")"},
       {R"("a)", "\"a\nb\"", R"("\x")", R"("\ud83e")", "\"\xc3\"", R"("\udd9c")"}},
      {R"({"type":["string","null"]})", {R"("x")", "null"}, {"1"}},
      {R"({"type":"integer","minimum":-3,"maximum":12})",
       {"-3", "-1", "0", "9", "10", "12"},
       {"-4", "13", "-0", "100", "1.0"}},
      {R"({"type":"integer","exclusiveMinimum":99,"exclusiveMaximum":1001})",
       {"100", "999", "1000"},
       {"99", "1001", "98", "2000"}},
      {R"({"type":"integer","minimum":2.5,"maximum":4.5})", {"3", "4"}, {"2", "5", "3.0"}},
      {R"({"type":"number","minimum":-1.25,"exclusiveMaximum":0.5})",
       {"-1.25", "-1.2", "-0.001", "0", "0.49", "0.4999"},
       {"-1.26", "-1.3", "0.5", "0.50", "1", "-2"}},
      {R"({"type":"number","minimum":10.05})", {"10.05", "10.050", "10.1", "11"}, {"10", "10.04"}},
      {R"({"type":"integer","multipleOf":7})", {"0", "7", "-14", "700"}, {"8", "1"}},
      {R"({"type":"number","multipleOf":0.25})", {"0.25", "1.5", "3", "-0.75"}, {"0.3", "0.125"}},
      {R"({"type":"integer","minimum":10,"maximum":30,"multipleOf":10})",
       {"10", "20", "30"},
       {"0", "40", "15"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("a\n")", "\"\xc3\xa9\xf0\x9f\xa6\x9c\"", R"("\u0041\ud83e\udd9cx")"},
       {R"("a")", R"("abcd")"}},
      {R"({"type":"string","pattern":"^a+$"})", {R"("aa")"}, {R"("ab")", R"("")"}},
      {R"({"type":"string","pattern":"b"})", {R"("abc")", R"("\"b")"}, {R"("ac")"}},
      {R"({"type":"string","pattern":"^a","maxLength":3,"minLength":2})",
       {R"("ab")", R"("abc")"},
       {R"("a")", R"("abcd")", R"("ba")"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, FormatsAreEnforced) {
  const auto format = [](const char* name) {
    return std::string(R"({"type":"string","format":")") + name + "\"}";
  };
  struct Case {
    const char* name;
    std::vector<std::string> yes, no;
  };
  const Case cases[] = {
      {"date", {"2024-02-29", "1999-12-31"}, {"2023-02-29", "2024-13-01", "2024-04-31", "24-1-1"}},
      {"time", {"23:59:59Z", "00:00:00.5+02:00"}, {"24:00:00Z", "12:00Z", "12:00:00"}},
      {"date-time", {"2024-11-21T12:00:00Z"}, {"2024-11-21 12:00:00Z", "2024-11-21"}},
      {"duration", {"P1Y2M3D", "PT1H30M", "P4W", "P1DT12H"}, {"P", "PT", "1D", "P1Y2D"}},
      {"email", {"joe.bloggs@example.com"}, {"joe", "@example.com", "a@b", ".a@b.de"}},
      {"hostname", {"www.example.com", "a-b"}, {"-a", "a..b", "a_b"}},
      {"ipv4", {"192.168.0.1", "255.255.255.255"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
      {"ipv6",
       {"::1", "2001:db8::ff00:42:8329", "::", "1:2:3:4:5:6:7:8", "1::"},
       {"1::2::3", "12345::", "1:2:3:4:5:6:7", ":1"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000"}},
      {"uri",
       {"https://example.com/a?b=c#d", "urn:isbn:1", "mailto:a@b.c"},
       {"example", "http:// x"}},
      {"json-pointer", {"", "/a/b~0", "/"}, {"a", "/~2"}},
  };
  for (const Case& c : cases) {
    const auto automaton = compiled_schema(format(c.name));
    ASSERT_TRUE(automaton) << c.name << ": " << automaton.error().message;
    for (const std::string& text : c.yes)
      EXPECT_TRUE(matches(*automaton, "\"" + text + "\"")) << c.name << " on " << text;
    for (const std::string& text : c.no)
      EXPECT_FALSE(matches(*automaton, "\"" + text + "\"")) << c.name << " on " << text;
  }
}

TEST(JsonSchema, ObjectsHaveTheirMembersInOrder) {
  const Sample samples[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"}},
           "required":["b"]})",
       {R"({"b":null})", R"({"a":1,"b":null})", "{\n  \"a\": 1,\n  \"b\": null\n}",
        R"({ "b": null })"},
       {R"({})", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"c":1})", R"({"b":null,})",
        R"({"b" :null})", " {\"b\":null}", "{\"b\":null}\n"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":
           {"type":"boolean"}})",
       {R"({})", R"({"a":1,"x":true})", R"({"x":true,"y":false})", R"({"ab":true,"":false})"},
       {R"({"a":true})", R"({"x":1})", R"({"\u0061":true})"}},
      {R"({"type":"object"})", {"{}", R"({"x":[1,{"y":"z"}]})"}, {"[]", "1"}},
      {R"({"type":"object","patternProperties":{"^n_":{"type":"integer"},"_s$":{"minimum":5}},
           "additionalProperties":false})",
       {R"({"n_a":1})", R"({"n_a_s":7})", R"({"a_s":6})"},
       {R"({"x":1})", R"({"n_a_s":1})", R"({"n_a":true})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]$"}})",
       {R"({"a":1})", "{}"},
       {R"({"ab":1})", R"({"A":1})"}},
      {R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":2,
           "maxProperties":2})",
       {R"({"a":1,"c":2})", R"({"b":1,"c":2})"},
       {R"({"a":1})", R"({"a":1,"b":1,"c":1})", "{}"}},
      {R"({"type":"object","required":["z"]})", {R"({"z":1})", R"({"z":1,"y":2})"}, {"{}"}},
      {R"({"properties":{"a":{"type":"integer"}}})", {"{}"}, {"1", "\"x\""}},
      {R"({"type":"object","properties":{"a":false,"b":true}})", {R"({"b":1})"}, {R"({"a":1})"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, MembersAskForOthers) {
  const Sample samples[] = {
      {R"({"properties":{"card":{"type":"integer"},"address":{"type":"null"},"x":{}},
           "dependentRequired":{"card":["address"]}})",
       {"{}", R"({"card":1,"address":null})", R"({"address":null})", R"({"x":1})",
        R"({"card":1,"address":null,"x":2})"},
       {R"({"card":1})", R"({"card":1,"x":2})", "1"}},
      // One asks for the next; names that no schema speaks of come only where they are asked for.
      {R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},
           "dependentRequired":{"a":["b"],"b":["c"],"d":["a"]}})",
       {"{}", R"({"b":null,"c":7})", R"({"a":null,"b":null,"c":7})"},
       {R"({"c":7})", R"({"a":null,"b":null})", R"({"a":null,"c":7})",
        R"({"a":null,"b":null,"c":7,"d":1})"}},
      {R"({"properties":{"a":{}},"required":["a"],"dependentRequired":{"a":["b"]}})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1})", "{}", R"({"b":2})"}},
      {R"({"properties":{"a":{}},"additionalProperties":false,"dependentRequired":{"a":["b"]}})",
       {"{}"},
       {R"({"a":1,"b":2})", R"({"a":1})"}},
      {R"({"type":"object","dependentRequired":{"a":["b"],"c":[]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":1,"z":1})", R"({"c":1})", R"({"z":1})"},
       {R"({"a":1})", R"({"a":1,"z":1})", R"({"z":1,"a":1})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"maxProperties":1,
           "dependentRequired":{"a":["b"]}})",
       {"{}", R"({"b":1})", R"({"c":1})"},
       {R"({"a":1,"b":1})", R"({"a":1})"}},
      {R"({"enum":[{"a":1},{"a":1,"b":2},{"b":3}],"dependentRequired":{"a":["b"]}})",
       {R"({"a":1,"b":2})", R"({"b":3})"},
       {R"({"a":1})"}},
      {R"({"allOf":[{"properties":{"a":{},"b":{}}},{"dependentRequired":{"a":["b"]}},
           {"dependentRequired":{"b":["a"]}}]})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"a":1})", R"({"b":1})"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, ReferencesNameAnchors) {
  const Sample samples[] = {
      {R"({"$ref":"#word","$defs":{"w":{"$anchor":"word","type":"null"}}})", {"null"}, {"1"}},
      {R"({"items":{"$ref":"#n"},"$defs":{"a":{"$defs":{"b":{"$anchor":"n","enum":[3]}}}}})",
       {"[]", "[3,3]"},
       {"[1]", "3"}},
      {R"({"$anchor":"tree","properties":{"next":{"$ref":"#tree"}}})",
       {"{}", R"({"next":{"next":{}}})"},
       {R"({"next":1})"}},
      // Within a part that has an identity of its own, `#` is that part.
      {R"({"properties":{"x":{"$id":"part","$ref":"#a","$defs":{"q":{"$anchor":"a","enum":[1]}}},
           "y":{"$ref":"#a"},"z":{"$id":"other","$ref":"#/$defs/q","$defs":{"q":{"enum":[2]}}}},
           "$defs":{"q":{"$anchor":"a","enum":[3]}}})",
       {R"({"x":1,"y":3,"z":2})"},
       {R"({"x":3})", R"({"y":1})", R"({"z":3})"}},
      // A property of that name is no anchor.
      {R"({"properties":{"$anchor":{"type":"null"},"x":{"$ref":"#a"}},
           "$defs":{"a":{"const":{"$anchor":"a"}},"b":{"$anchor":"a","type":"integer"}}})",
       {R"({"$anchor":null,"x":5})"},
       {R"({"x":{"$anchor":"a"}})"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, ArraysCountTheirItems) {
  const Sample samples[] = {
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1, 2,3]", "[\n  1,\n  2\n]"},
       {"[]", "[1,2,3,4]", "[1,]", "[\"a\"]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]})",
       {"[]", "[1]", "[1,\"a\"]"},
       {"[\"a\"]", "[1,\"a\",2]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2,
           "maxItems":3})",
       {"[1,null]", "[1,null,null]"},
       {"[1]", "[null]", "[1,null,null,null]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":3000,"maxItems":3001})",
       {},
       {"[1]"}},
      {R"({"type":"array"})", {"[]", "[1,\"a\",[],{}]"}, {"{}"}},
      {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, WhatMustNotHoldIsExcluded) {
  const Sample samples[] = {
      {R"({"type":"string","not":{"enum":["none",""]}})",
       {R"("none ")", R"("x")"},
       {R"("none")", R"("")"}},
      {R"({"type":"string","not":{"pattern":"^\\s*$"}})", {R"("a ")"}, {R"("")", R"("  ")"}},
      {R"({"type":["string","null","boolean"],"not":{"enum":[null,true]}})",
       {R"("null")", "false"},
       {"null", "true"}},
      {R"({"enum":["a","b",3],"not":{"const":"a"}})", {R"("b")", "3"}, {R"("a")"}},
      {R"({"not":{"type":["object","array"]}})", {"1", "\"x\"", "null"}, {"{}", "[]"}},
      {R"({"type":"integer","not":{"minimum":5}})", {"4", "-3"}, {"5", "6"}},
      {R"({"type":"string","not":{"maxLength":2}})", {R"("abc")"}, {R"("ab")"}},
      {R"({"not":{"not":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"type":"string","not":{"anyOf":[{"const":"a"},{"pattern":"^b"}]}})",
       {R"("c")", R"("ab")"},
       {R"("a")", R"("bc")"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"not":{"required":["a","b"]}})",
       {"{}", R"({"a":1})", R"({"b":1,"c":1})"},
       {R"({"a":1,"b":1})", "1"}},
      {R"({"type":"object","not":{"required":["a"]}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"type":"string","pattern":"^(?=.*[0-9])(?!admin)[a-z0-9]+$"})",
       {R"("a1")", R"("1admin")"},
       {R"("ab")", R"("admin1")"}},
      {R"({"properties":{"x":false,"y":{"not":{}}}})", {"{}"}, {R"({"y":1})"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, ConditionsChooseWhatHolds) {
  const Sample samples[] = {
      {R"({"properties":{"kind":{"enum":["a","b"]},"x":{"type":"null"}},"required":["kind"],
           "if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["x"]}})",
       {R"({"kind":"a","x":null})", R"({"kind":"b"})", R"({"kind":"b","x":null})"},
       {R"({"kind":"a"})", "{}"}},
      {R"({"properties":{"on":{"type":"boolean"},"t":{}},
           "if":{"properties":{"on":{"const":true}},"required":["on"]},"then":{"required":["t"]},
           "else":{"not":{"required":["t"]}}})",
       {"{}", R"({"on":false})", R"({"on":true,"t":1})"},
       {R"({"on":true})", R"({"on":false,"t":1})", R"({"t":1})"}},
      {R"({"if":{"type":"string"},"then":{"minLength":2},"else":{"type":"integer"}})",
       {R"("ab")", "3"},
       {R"("a")", "null"}},
      {R"({"enum":[{"a":1},{"a":2,"b":1},{"a":1,"b":1}],
           "if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}})",
       {R"({"a":1,"b":1})", R"({"a":2,"b":1})"},
       {R"({"a":1})"}},
      {R"({"if":{"type":"string"}})", {"1"}, {}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, AlternativesExcludeOneAnother) {
  const Sample samples[] = {
      {R"({"properties":{"a":{},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})"},
       {"{}", R"({"a":1,"b":1})"}},
      {R"({"type":"string","oneOf":[{"pattern":"^a"},{"pattern":"b$"}]})",
       {R"("ac")", R"("cb")"},
       {R"("ab")", R"("c")"}},
      {R"({"type":"integer","oneOf":[{"minimum":5},{"maximum":7}]})", {"4", "8"}, {"5", "7"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, ItemsDiffer) {
  const Sample samples[] = {
      {R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":1})",
       {R"(["a"])", R"(["c","a","b"])", "[ \"b\",\n  \"a\" ]"},
       {"[]", R"(["a","a"])", R"(["a","b","a"])", R"(["d"])"}},
      {R"({"type":"array","items":{"enum":[1,1.0,2]},"uniqueItems":true,"maxItems":2})",
       {"[]", "[1]", "[1,2]"},
       {"[1,1.0]", "[1,1]"}},
      {R"({"type":"array","items":{"const":1},"uniqueItems":true,"minItems":2})", {}, {"[1,1]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"const":7}})",
       {"[7]", "[1,7,2]"},
       {"[]", "[1]", "[7,\"a\"]"}},
  };
  for (const Sample& sample : std::span(samples).first(2)) expect_samples({&sample, 1});
  expect_samples({&samples[3], 1});
  EXPECT_FALSE(compiled_schema(samples[2].schema));
}

TEST(JsonSchema, OtherDraftsAreUnderstood) {
  const Sample samples[] = {
      {R"({"type":"integer","minimum":3,"exclusiveMinimum":true,"maximum":9,
           "exclusiveMaximum":false})",
       {"4", "9"},
       {"3", "10"}},
      {R"({"exclusiveMaximum":true,"type":"null"})", {"null"}, {"1"}},
      {R"({"properties":{"a":{},"b":{}},"dependencies":{"a":["b"]}})",
       {"{}", R"({"a":1,"b":1})"},
       {R"({"a":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["x","y"]},
           "additionalProperties":{"type":"integer"}})",
       {"{}", R"({"y":1})", R"({"x":1,"y":2})"},
       {R"({"z":1})", R"({"x":null})", R"({"x":1,"x":2})"}},
      {R"({"type":"object","propertyNames":{"not":{"pattern":"^_"}}})",
       {R"({"a_":1})"},
       {R"({"_a":1})"}},
      {R"({"type":"object","properties":{"a":{}},"allOf":[{"properties":{"b":{}}}],
           "additionalProperties":true,"unevaluatedProperties":false})",
       {R"({"a":1,"b":2})"},
       {R"({"c":1})"}},
      {R"({"prefixItems":[{}],"unevaluatedItems":false})", {"[1]"}, {"[1,2]"}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, SchemasCombine) {
  const Sample samples[] = {
      {R"({"enum":["a",1,null,{"x":[1]}]})",
       {"\"a\"", "1", "null", "{\"x\": [1]}"},
       {"\"b\"", "2"}},
      {R"({"enum":["a","bb",3],"type":"string","minLength":2})", {"\"bb\""}, {"\"a\"", "3"}},
      {R"({"const":"x\"y"})", {R"("x\"y")"}, {"\"x\""}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
       {"5", "\"a\""},
       {"\"ab\""}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
           "anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {"{}"}},
      {R"({"allOf":[{"type":"integer","minimum":3},{"maximum":5}]})", {"3", "5"}, {"2", "6"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":3}}},{"properties":{"a":{"type":"integer"}},
           "required":["a"]}]})",
       {R"({"a":3})"},
       {R"({"a":2})", R"({"a":3.5})", "{}"}},
      {R"({"oneOf":[{"type":"object","properties":{"t":{"const":"a"},"v":{"type":"integer"}},
           "required":["t"]},{"type":"object","properties":{"t":{"const":"b"}},"required":["t"]}]})",
       {R"({"t":"a","v":1})", R"({"t":"b"})"},
       {R"({"t":"b","v":1})"}},
      {R"({"oneOf":[{"type":"string"},{"type":"null"},{"type":"integer","minimum":3},
           {"type":"integer","exclusiveMaximum":3}]})",
       {"\"x\"", "null", "7", "2"},
       {"1.5"}},
      {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},
           "next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"]}}})",
       {R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{"v":2}})"}},
      {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", {"null"}, {"1"}},
      {R"({"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"type":"string","nullable":true})", {"null", "\"\""}, {"1"}},
      {R"(true)", {"1", "{}"}, {""}},
  };
  expect_samples(samples);
}

TEST(JsonSchema, WhatIsNotSupportedIsNamedWithItsPlace) {
  for (const auto& [schema, words] :
       std::initializer_list<std::pair<const char*, std::vector<const char*>>>{
           {R"({"properties":{"a":{"not":{"items":{}}}}})", {"'not'", "#/properties/a/not"}},
           {R"({"properties":{"a":{"type":"number","not":{"const":0}}}})", {"'not'"}},
           {R"({"if":{"minProperties":1},"then":{"required":["a"]}})", {"'if'"}},
           {R"({"items":{"contains":{},"minContains":2}})", {"'contains'", "#/items/contains"}},
           {R"({"type":"array","items":{"enum":[1,2,3,4,5,6,7,8]},"uniqueItems":true})",
            {"'uniqueItems'", "a few values"}},
           {R"({"dependencies":{"a":{"required":["b"]}}})", {"'dependencies'"}},
           {R"({"type":"array","uniqueItems":true})", {"'uniqueItems'"}},
           {R"({"unevaluatedProperties":{"type":"null"}})", {"'unevaluatedProperties'"}},
           {R"({"dependentSchemas":{}})", {"'dependentSchemas'"}},
           {R"({"dependentRequired":{"a":["A"],"b":["B"],"c":["C"],"d":["D"],"e":["E"],"f":["F"],
                "g":["G"]}})",
            {"'dependentRequired'", "at most 64 ways"}},
           {R"({"dependentRequired":[]})", {"dependentRequired is not an object"}},
           {R"({"dependentRequired":{"a":"b"}})", {"dependentRequired is not an array", "#/dep"}},
           {R"({"dependentRequired":{"a":[1]}})", {"not a string"}},
           {R"({"$ref":"#a","enum":[{"$anchor":"a"}]})", {"leads nowhere"}},
           {R"({"$ref":"#a","$defs":{"x":{"$id":"other","$anchor":"a"}}})", {"leads nowhere"}},
           {R"({"$dynamicRef":"#a"})", {"'$dynamicRef'"}},
           {R"({"requierd":["a"]})", {"'requierd'"}},
           {R"({"$ref":"http://example.com/x"})", {"'$ref'", "within the schema"}},
           {R"({"$ref":"#/nowhere"})", {"leads nowhere"}},
           {R"s({"type":"string","pattern":"(?=a)"})s", {"'pattern'", "lookahead", "#/pattern"}},
           {R"({"type":"string","format":"colour"})", {"'format'", "colour"}},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", {"'oneOf'"}},
           {R"({"oneOf":[{"items":{}},{"items":{"type":"null"}}]})", {"'oneOf'", "0 and 1"}},
           {R"({"type":"text"})", {"expected a type", "#/type"}},
           {R"({"type":"number","multipleOf":123.456789})", {"'multipleOf'"}},
           {R"({"type":"string","minLength":3,"maxLength":2})", {"no output at all"}},
           {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
            {"no output at all"}},
           {R"(false)", {"no output at all"}},
           {R"([])", {"expected an object or a boolean"}},
           {R"({"minLength":-1})", {"not negative"}},
           {R"({"required":"a"})", {"required is not an array"}},
           {R"({)", {}},
       }) {
    const auto automaton = compiled_schema(schema);
    ASSERT_FALSE(automaton) << schema;
    for (const char* word : words)
      EXPECT_NE(automaton.error().message.find(word), std::string::npos)
          << schema << ": " << automaton.error().message;
  }
}

// As json.dumps(indent=...) writes it, with `unit` for a level.
std::string pretty(int levels, const std::string& unit) {
  std::string text, indent = "\n";
  for (int i = 0; i < levels; ++i) text += "{" + (indent += unit) + "\"a\": ";
  text += "1";
  for (int i = 0; i < levels; ++i) {
    indent.resize(indent.size() - unit.size());
    text += indent + "}";
  }
  return text;
}

TEST(JsonSchema, WhiteSpaceIsWhatPrettyFormsNeed) {
  std::string schema = R"({"type":"integer"})";
  for (int levels = 1; levels <= 6; ++levels) {
    schema = R"({"type":"object","properties":{"a":)" + schema + R"(},"required":["a"]})";
    const auto automaton = compiled_schema(schema);
    ASSERT_TRUE(automaton);
    for (const char* unit : {"  ", "    ", "\t"})
      EXPECT_TRUE(matches(*automaton, pretty(levels, unit))) << levels;
    const auto columns = static_cast<size_t>(std::max(8, 4 * levels));
    const auto indented = [&](size_t count) {
      return matches(*automaton, "{\n" + std::string(count, ' ') + pretty(levels, "").substr(2));
    };
    EXPECT_TRUE(indented(columns));
    EXPECT_FALSE(indented(columns + 1));
  }
  for (const char* free : {R"({"type":"object"})", R"({"properties":{"a":{"$ref":"#"}}})"}) {
    const auto automaton = compiled_schema(free);
    ASSERT_TRUE(automaton);
    EXPECT_TRUE(matches(*automaton, "{\n" + std::string(24, ' ') + "}"));
    EXPECT_FALSE(matches(*automaton, "{\n" + std::string(40, ' ') + "}"));
    for (const char* text : {"{  }", "{\n\n}", "[  ]", "{\"a\":  {}}", "{\"a\":\n{}}",
                             "{\n\n\"a\":{}}", "{  \"a\":{}}"})
      EXPECT_FALSE(matches(*automaton, text)) << text;
  }
}

TEST(JsonSchema, RandomOutputsOfRandomSchemasAreValid) {
  const char* count_text = std::getenv("WEIR_SCHEMA_COUNT");
  const unsigned count = count_text ? static_cast<unsigned>(std::atoi(count_text)) : 1000;
  const char* dump_path = std::getenv("WEIR_SCHEMA_DUMP");  // For other validators.
  std::ofstream dump;
  if (dump_path) dump.open(dump_path);
  int refused = 0, whole = 0, prefixes = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    const std::string schema = SchemaGenerator(seed).schema();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + schema);
    const auto automaton = compiled_schema(schema);
    if (!automaton) {
      ++refused;
      continue;
    }
    const auto schema_doc = JsonDoc::parse(schema);
    ASSERT_TRUE(schema_doc);
    const JsonValidator validator(schema_doc->root());
    std::mt19937 random(seed);
    for (int run = 0; run < 2; ++run) {
      Matcher matcher(*automaton, small_vocabulary());
      bool ended = false;
      const std::string text = walk(matcher, random, 300, ended);
      if (!ended) {
        ++prefixes;
        continue;
      }
      const auto doc = JsonDoc::parse(text);
      ASSERT_TRUE(doc) << "not JSON: " << text;
      ASSERT_TRUE(validator.valid(doc->root())) << "not valid: " << text;
      if (dump)
        dump << schema << "\n" << *[&] {
        static std::string line;
        line.clear();
        JsonWriter(line).value(doc->root());
        return &line;
      }() << "\n";
      ++whole;
    }
    if (HasFailure()) return;
  }
  std::printf("%u schemas: %d refused; outputs: %d whole, %d prefixes\n", count, refused, whole,
              prefixes);
  EXPECT_GT(whole, static_cast<int>(count));
  EXPECT_LT(refused, static_cast<int>(count / 3));
}

TEST(JsonSchema, HostileSchemasAreRefusedOrHarmless) {
  const char* count_text = std::getenv("WEIR_SCHEMA_COUNT");
  const unsigned count = count_text ? static_cast<unsigned>(std::atoi(count_text)) / 10 : 64;
  int refused = 0, given_up = 0;
  double slowest = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    const std::string schema = SchemaGenerator(seed).hostile();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + schema.substr(0, 200));
    const std::clock_t begin = std::clock();
    const auto automaton = compiled_schema(schema);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    slowest = std::max(slowest, seconds);
    if (std::getenv("WEIR_SCHEMA_VERBOSE"))
      std::printf("%u: %.3f s, %s, %s\n", seed, seconds, schema.substr(0, 60).c_str(),
                  automaton ? std::to_string((*automaton)->state_count()).c_str()
                            : automaton.error().message.substr(0, 60).c_str());
    if (JsonDoc::parse(schema)) {  // In part, it is always taken.
      const auto loose = compile(loose_schema(schema, "hostile"));
      ASSERT_TRUE(loose) << loose.error().message;
      EXPECT_LT((*loose)->memory_bytes(), 200u << 20);
      given_up += (*loose)->left_out() == std::vector<std::string>{"hostile: the whole schema"};
    }
    if (!automaton) {
      EXPECT_FALSE(automaton.error().message.empty());
      ++refused;
      continue;
    }
    EXPECT_LT((*automaton)->memory_bytes(), 200u << 20);
    std::mt19937 random(seed);
    Matcher matcher(*automaton, small_vocabulary());
    bool ended = false;
    walk(matcher, random, 60, ended);
    if (HasFailure()) return;
  }
  std::printf("%u hostile schemas: %d refused, %d given up; slowest compilation %.2f s of CPU\n",
              count, refused, given_up, slowest);
}

}  // namespace
}  // namespace weir::grammar
