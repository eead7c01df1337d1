#include "jinja/jinja.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "base/json.h"
#include "jinja/codepoint.h"
#include "jinja/number.h"

namespace weir::jinja {
namespace {

constexpr int64_t kNow = 1767323045;  // 2026-01-02 03:04:05 UTC.

// The text, or "error: " and the message.
std::string render(const std::string& source, const std::string& variables = "{}",
                   const Limits& limits = {}) {
  const auto parsed = Template::parse(source);
  if (!parsed) return "error: " + parsed.error().message;
  const auto rendered = parsed->render(variables, kNow, limits);
  return rendered ? *rendered : "error: " + rendered.error().message;
}

bool fails_with(const std::string& result, const std::string& what) {
  return result.starts_with("error: ") && result.find(what) != std::string::npos;
}

// Some 900 expressions and statements, most found at random, with what Python's Jinja2 makes of
// them: tools/render_templates.py tests/data/jinja_cases.json.
TEST(Jinja, AgreesWithPythonOnEveryRecordedCase) {
  const auto text = read_file(WEIR_SOURCE_DIR "/tests/data/jinja_cases.json", 16 << 20);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto doc = JsonDoc::parse(*text);
  ASSERT_TRUE(doc.has_value()) << doc.error().message;
  std::string variables;
  JsonWriter(variables).value(JsonValue(doc->root()["variables"].value_unsafe()));
  const JsonArray cases = doc->root()["cases"].get_array().value_unsafe();
  int count = 0;
  for (const JsonValue each : cases) {
    const std::string source(each["template"].get_string().value_unsafe());
    const std::string found = render(source, variables);
    std::string_view expected;
    if (each["ok"].get(expected) == simdjson::SUCCESS) {
      EXPECT_EQ(found, expected) << source;
    } else {
      EXPECT_TRUE(found.starts_with("error: ")) << source << " gave " << found;
    }
    ++count;
  }
  EXPECT_GT(count, 500);
}

TEST(Jinja, GivesUpTemplatesThatDoNotEnd) {
  const std::string forever =
      "{% macro m(n) %}{% for i in range(n) %}{% for j in range(n) %}{% for k in range(n) %}"
      "{% set x = i + j + k %}{% endfor %}{% endfor %}{% endfor %}{% endmacro %}{{ m(99999) }}";
  EXPECT_TRUE(fails_with(render(forever), "steps"));
  EXPECT_TRUE(fails_with(render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "recursion"));
  EXPECT_TRUE(fails_with(render("{% macro m(x=m()) %}{% endmacro %}{{ m() }}"), "recursion"));
  EXPECT_TRUE(fails_with(
      render("{% for x in l recursive %}{{ loop(l) }}{% endfor %}", R"({"l": [1]})"), "recursion"));
}

TEST(Jinja, GivesUpGeneratorsThatDrawOnOneAnotherTooDeeply) {
  const auto chain = [](int length) {
    return "{% set ns = namespace(g=[1, 2]) %}{% for i in range(" + std::to_string(length) +
           ") %}{% set ns.g = ns.g|map('string')|select %}{% endfor %}{{ ns.g|list }}";
  };
  EXPECT_EQ(render(chain(50)), "['1', '2']");
  EXPECT_TRUE(fails_with(render(chain(5000)), "recursion"));
}

TEST(Jinja, BoundsTheMemoryOfValues) {
  EXPECT_TRUE(fails_with(render("{{ ('x' * 1000000000000)|length }}"), "bytes"));
  EXPECT_TRUE(fails_with(render("{{ ([1] * 1000000000000)|length }}"), "bytes"));
  EXPECT_TRUE(fails_with(render("{{ 'x'.center(1000000000000)|length }}"), "bytes"));
  EXPECT_TRUE(fails_with(render("{{ {}|tojson(indent=1000000000000) }}"), "bytes"));
  EXPECT_TRUE(fails_with(render("{% set ns = namespace(s='x') %}{% for i in range(99) %}"
                                "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
                         "bytes"));
  EXPECT_TRUE(fails_with(render("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}"
                                "{% set ns.l = ns.l + ns.l %}{% endfor %}"),
                         "bytes"));
  EXPECT_TRUE(fails_with(render("{% set ns = namespace(s='x' * 100000) %}"
                                "{% for i in range(9) %}{% set ns.s = ns.s|replace('x', ns.s) %}"
                                "{% endfor %}"),
                         "bytes"));
  EXPECT_TRUE(fails_with(render("{{ ('a' * 50000000).split('a')|length }}"), "bytes"));
  EXPECT_TRUE(fails_with(render("{{ ('[' ~ '1,' * 20000000 ~ '1]')|from_json|length }}"), "bytes"));
  EXPECT_TRUE(
      fails_with(render("{% set t = '[' ~ '1,' * 500000 ~ '1]' %}{% for i in range(99999) %}"
                        "{% set x = t|from_json %}{% endfor %}"),
                 ""));
  EXPECT_TRUE(fails_with(render("{{ range(100001) }}"), "Range too big"));
  EXPECT_TRUE(fails_with(render("{{ '%999999999d' % 1 }}"), "too large"));
  EXPECT_TRUE(fails_with(render("{{ '{:999999999}'.format(1) }}"), "format"));
}

// Steps are to bound time: what costs more than a step must pay for it. Each of these is a few
// steps by its statements and very many by what they go over.
TEST(Jinja, PaysForWorkThatOneExpressionDoes) {
  Limits limits;
  limits.steps = 50'000;
  const auto gives_up = [&](const std::string& source, const std::string& variables = "{}") {
    const std::string result = render(source, variables, limits);
    return fails_with(result, "steps") ? std::string("gave up") : result.substr(0, 200);
  };
  // 2^14 items by sharing.
  const std::string shared =
      "{% set ns = namespace(t=(1, 2)) %}{% for i in range(13) %}{% set ns.t = (ns.t, ns.t) %}"
      "{% endfor %}";
  const std::string often = "{% for i in range(100) %}";
  EXPECT_EQ(gives_up(shared + often + "{{ ns.t in {} }}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + often + "{{ {}[ns.t] }}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + often + "{% set x = {ns.t: 1} %}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + often + "{{ {}.get(ns.t) }}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + often + "{{ dict([[ns.t, 1]])|length }}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + often + "{{ [ns.t]|unique|list|length }}{% endfor %}"), "gave up");
  EXPECT_EQ(gives_up(shared + "{% set d = {ns.t: 1} %}{% set e = {ns.t: 1} %}" + often +
                     "{{ d == e }}{% endfor %}"),
            "gave up");
  // Frames with many variables.
  std::string sets;
  for (int i = 0; i < 500; ++i) sets += "{% set v" + std::to_string(i) + " = 1 %}";
  const std::string inner = "{% if false %}" + sets + "{% endif %}";
  EXPECT_EQ(gives_up("{% for i in range(1000) %}" + inner + "{% endfor %}"), "gave up");
  EXPECT_EQ(
      gives_up("{% for i in range(1000) %}{% for j in [] %}" + inner + "{% endfor %}{% endfor %}"),
      "gave up");
  EXPECT_EQ(gives_up("{% for i in range(1000) %}{% with %}" + inner + "{% endwith %}{% endfor %}"),
            "gave up");
  // Long keys and many keywords.
  const std::string key(100'000, 'k');
  const std::string named = R"({"a": {")" + key + R"(": 1}, "b": {")" + key + R"(": 1}, "m": {)" +
                            [] {
                              std::string entries;
                              for (int i = 0; i < 1000; ++i)
                                entries += (i ? ", " : "") + ("\"k" + std::to_string(i)) + "\": 1";
                              return entries;
                            }() +
                            "}}";
  EXPECT_EQ(gives_up(often + "{{ a == b }}{% endfor %}", named), "gave up");
  EXPECT_EQ(gives_up(often + "{{ ''.format_map(m) }}{% endfor %}", named), "gave up");
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += "{k999}";
  EXPECT_EQ(gives_up("{{ '" + fields + "'.format_map(m) }}", named), "gave up");
}

TEST(Jinja, BoundsTheOutput) {
  Limits limits;
  limits.output_bytes = 1000;
  EXPECT_EQ(render("{{ 'x' * 1000 }}", "{}", limits), std::string(1000, 'x'));
  EXPECT_TRUE(fails_with(render("{{ 'x' * 1001 }}", "{}", limits), "output"));
  EXPECT_TRUE(
      fails_with(render("{% for i in range(501) %}ab{% endfor %}", "{}", limits), "output"));
}

// Small values that would print, or compare, for ever.
TEST(Jinja, IsNotCaughtByValuesThatFold) {
  const std::string fold =
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  EXPECT_TRUE(render(fold + "{{ ns.x }}").starts_with("error: "));
  EXPECT_TRUE(render(fold + "{{ ns.x|tojson }}").starts_with("error: "));
  EXPECT_TRUE(render(fold + "{{ ns.x == ns.y }}").starts_with("error: "));
  EXPECT_TRUE(render(fold + "{{ ns.x < ns.y }}").starts_with("error: "));
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_TRUE(fails_with(render(deep + "{{ ns.x }}"), "recursion"));
  EXPECT_TRUE(fails_with(render(deep + "{{ ns.x|tojson }}"), "recursion"));
  const std::string keys =
      "{% set ns = namespace(x=()) %}{% for i in range(5000) %}"
      "{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}";
  EXPECT_TRUE(fails_with(render(keys), "unhashable"));
  EXPECT_TRUE(
      fails_with(render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"), "recursion"));
}

TEST(Jinja, RefusesTemplatesNestedTooDeeply) {
  const auto nested = [](const std::string& open, const std::string& close, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += open;
    text += "1";
    for (int i = 0; i < times; ++i) text += close;
    return text;
  };
  EXPECT_EQ(render("{{ " + nested("(", ")", 50) + " }}"), "1");
  for (const char* open : {"(", "[", "{1:", "not ", "-", "x[", "f(", "1 if ", "x|f(", "(1,"})
    EXPECT_TRUE(render("{{ " + nested(open, ")", 20000) + " }}").starts_with("error: ")) << open;
  for (const char* more : {" + 1", ".x", "|string", " if 1 else 1", " ** 1", "[0]", " is true"})
    EXPECT_TRUE(
        render("{{ 1" + nested(more, "", 20000).substr(0, 100000) + " }}").starts_with("error: "))
        << more;
  EXPECT_TRUE(fails_with(render(nested("{% if 1 %}", "{% endif %}", 5000)), "nested too deeply"));
  std::string chain = "{% if 0 %}0";
  for (int i = 0; i < 5000; ++i) chain += "{% elif " + std::to_string(i) + " == 4999 %}hit";
  EXPECT_EQ(render(chain + "{% endif %}"), "hit") << "a long chain is not deep";
}

TEST(Jinja, KeepsIntegersExactOrRefusesThem) {
  EXPECT_EQ(render("{{ 9223372036854775806 + 1 }}"), "9223372036854775807");
  EXPECT_TRUE(fails_with(render("{{ 9223372036854775807 + 1 }}"), "64 bits"));
  EXPECT_TRUE(fails_with(render("{{ 2 ** 63 }}"), "64 bits"));
  EXPECT_TRUE(fails_with(render("{{ 9223372036854775808 }}"), "64 bits"));
  EXPECT_EQ(render("{{ n }} {{ n|tojson }} {{ n == n }} {{ n is integer }}",
                   R"({"n": 18446744073709551615})"),
            "18446744073709551615 18446744073709551615 True True");
  EXPECT_TRUE(fails_with(render("{{ n + 1 }}", R"({"n": 18446744073709551615})"), "64 bits"));
}

TEST(Jinja, TakesTheLastOfEqualKeysAsPythonDoes) {
  EXPECT_EQ(render("{{ d }}", R"({"d": {"a": 1, "b": 2, "a": 3}})"), "{'a': 3, 'b': 2}");
}

TEST(Jinja, FindsEveryKeyOfALargeMapping) {
  std::string json = R"({"d": {)";
  for (int i = 0; i < 3000; ++i)
    json += (i ? ", \"k" : "\"k") + std::to_string(i) + "\": " + std::to_string(i);
  json += "}}";
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in range(3000) %}"
                   "{% set ns.n = ns.n + d['k' ~ i] %}{% endfor %}{{ ns.n }} {{ 'k3000' in d }}",
                   json),
            "4498500 False");
}

// Text built up piece by piece shares memory; earlier values must not see what was added later.
TEST(Jinja, GrowsTextInPlaceWithoutChangingWhatOthersHold) {
  EXPECT_EQ(
      render("{% set ns = namespace(s='a' * 300, t='') %}"
             "{% for i in range(5) %}{% set ns.t = ns.s %}{% set ns.s = ns.s ~ i %}{% endfor %}"
             "{% set a = ns.t ~ 'X' %}{% set b = ns.t ~ 'Y' %}"
             "{{ ns.s[299:] }} {{ ns.t[299:] }} {{ a[299:] }} {{ b[299:] }}"),
      "a01234 a0123 a0123X a0123Y");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(render("{% set ns = namespace(s='') %}{% for i in range(50000) %}"
                   "{% set ns.s = ns.s ~ 'twenty characters...' %}{% endfor %}{{ ns.s|length }}"),
            "1000000");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// Needles that make a naive search quadratic; a minute if it were.
TEST(Jinja, SearchesHostileTextInLinearTime) {
  const std::string build = "{% set a = 'a' * 400000 %}{% set n = 'a' * 200000 ~ 'b' %}";
  EXPECT_EQ(render(build + "{{ n in a }} {{ a.find(n) }} {{ a.rfind('b' ~ 'a' * 200000) }} "
                           "{{ a.split(n)|length }} {{ a.replace(n, '')|length }}"),
            "False -1 -1 1 400000");
}

TEST(Jinja, SeesCharactersNotBytes) {
  EXPECT_EQ(render("{{ s|length }} {{ s[1] }} {{ s[-1] }} {{ s[1:3] }} {{ s[::-1] }} "
                   "{{ s.find('好') }} {{ s.center(8, '·') }} {{ '%-6s|' % s }}",
                   R"({"s": "aé你好😀"})"),
            "5 é 😀 é你 😀好你éa 3 ·aé你好😀·· aé你好😀 |");
}

TEST(Codepoint, MapsCaseAsUnicodeSays) {
  EXPECT_EQ(to_upper("straße ŉ ﬁ ᾳ"), "STRASSE ʼN FI ΑΙ");
  EXPECT_EQ(to_lower("ΑΣ ΑΣΑ Σ İ"), "ας ασα σ i̇");
  EXPECT_EQ(to_capitalized("ǆ ABC"), "ǅ abc");
  EXPECT_EQ(to_title("it's ﬁne x1y"), "It'S Fine X1Y");
  EXPECT_EQ(to_swapped_case("aBß"), "AbSS");
}

TEST(Number, PrintsFloatsAsPythonDoes) {
  const std::pair<double, const char*> cases[] = {{0.0, "0.0"},
                                                  {-0.0, "-0.0"},
                                                  {1.0, "1.0"},
                                                  {0.1, "0.1"},
                                                  {1e15, "1000000000000000.0"},
                                                  {1e16, "1e+16"},
                                                  {1e-4, "0.0001"},
                                                  {1e-5, "1e-05"},
                                                  {1.5e300, "1.5e+300"},
                                                  {5e-324, "5e-324"},
                                                  {123456789.123, "123456789.123"},
                                                  {2.5e-7, "2.5e-07"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(float_repr(number), text);
}

}  // namespace
}  // namespace weir::jinja
