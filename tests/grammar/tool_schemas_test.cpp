// The parameters of 206 tools in the style of MCP servers (tests/data/tool_schemas), half of them
// with keywords that are hard to enforce: outputs satisfy all of a schema but what is named as left
// out, and a schema of which something is left out is refused where it has to hold as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "grammar/parts.h"
#include "grammar/source.h"
#include "json_validator.h"
#include "matching.h"
#include "random_walk.h"

namespace weir::grammar {
namespace {

struct Tool {
  std::string name, schema;
};

std::vector<Tool> all_tools() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/data/tool_schemas"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Tool> tools;
  for (const auto& path : files) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const auto doc = JsonDoc::parse(text.str());
    if (!doc) continue;
    const JsonArray array = doc->root().get_array().value();
    for (const JsonValue element : array) {
      const JsonObject object = element.get_object().value();
      Tool& tool = tools.emplace_back();
      tool.name = path.stem().string() + "." + std::string(object["name"].get_string().value());
      JsonWriter(tool.schema).value(object["parameters"].value());
    }
  }
  return tools;
}

constexpr std::string_view kName = "tools[0].function.parameters";

// The keywords that the automaton names, without the schema's name.
std::set<std::string> left_out(const Automaton& automaton) {
  std::set<std::string> keywords;
  for (const std::string& name : automaton.left_out()) {
    EXPECT_TRUE(name.starts_with(std::string(kName) + ": ")) << name;
    keywords.insert(name.substr(kName.size() + 2));
  }
  return keywords;
}

TEST(ToolSchemas, OutputsSatisfyWhatIsNotNamedAsLeftOut) {
  const std::vector<Tool> tools = all_tools();
  ASSERT_GE(tools.size(), 200u);
  const char* dump_path = std::getenv("WEIR_SCHEMA_DUMP");  // For other validators.
  std::ofstream dump;
  if (dump_path) dump.open(dump_path);
  int whole = 0, runs = 0, incomplete = 0, keywords = 0;
  for (const Tool& tool : tools) {
    SCOPED_TRACE(tool.name + ": " + tool.schema);
    auto automaton = compile(loose_schema(tool.schema, kName));
    ASSERT_TRUE(automaton) << automaton.error().message;
    const std::set<std::string> missing = left_out(**automaton);
    if (dump) dump << "# " << tool.name << "\n";
    for (const std::string& name : missing)
      if (dump) dump << "- " << name << "\n";
    EXPECT_FALSE(missing.contains("the whole schema"));
    incomplete += missing.empty() ? 0 : 1;
    keywords += static_cast<int>(missing.size());
    const auto schema = JsonDoc::parse(tool.schema);
    const JsonValidator validator(schema->root(), missing);
    const std::shared_ptr<const Automaton> shared = std::move(*automaton);
    std::mt19937 random(7);
    for (int run = 0; run < 6; ++run, ++runs) {
      Matcher matcher(shared, small_vocabulary());
      bool ended = false;
      const std::string text = walk(matcher, random, 1500, ended);
      if (!ended) continue;
      ++whole;
      const auto value = JsonDoc::parse(text);
      ASSERT_TRUE(value) << "not JSON: " << text;
      EXPECT_TRUE(validator.valid(value->root())) << "not valid: " << text;
      if (dump) {
        std::string line;
        JsonWriter(line).value(value->root());
        dump << tool.schema << "\n" << line << "\n";
      }
    }
    if (HasFailure()) return;
  }
  std::printf("%zu tools, %d of them in part (%d keywords); %d of %d outputs whole\n", tools.size(),
              incomplete, keywords, whole, runs);
  EXPECT_GT(whole, runs * 9 / 10);
}

TEST(ToolSchemas, FitInOneGrammar) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("any").begin_array();
  size_t number = 0;
  for (const Tool& tool : all_tools()) {
    if (std::getenv("WEIR_SCHEMA_VERBOSE")) {
      const std::clock_t begin = std::clock();
      const auto one = compile(loose_schema(tool.schema, kName));
      std::printf("%8zu states %6.3f s %s\n", one ? (*one)->state_count() : 0,
                  static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, tool.name.c_str());
    }
    json.begin_object().key("seq").begin_array();
    json.begin_object().field("text", tool.name + " ").end_object();
    json.begin_object().key("schema").raw(tool.schema);
    json.field("loose", "tools[" + std::to_string(number++) + "]").end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  const std::clock_t begin = std::clock();
  const auto all = compile({.kind = GrammarSource::Kind::kParts, .text = text, .choices = {}});
  ASSERT_TRUE(all) << all.error().message;
  for (const std::string& name : (*all)->left_out())
    EXPECT_FALSE(name.ends_with("the whole schema")) << name;
  std::printf("%zu tools: %zu states, %zu bytes, %.2f s of CPU\n", number, (*all)->state_count(),
              (*all)->memory_bytes(), static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
}

TEST(ToolSchemas, AreRefusedByNameWhereNothingMayBeLeftOut) {
  for (const Tool& tool : all_tools()) {
    SCOPED_TRACE(tool.name + ": " + tool.schema);
    const auto loose = compile(loose_schema(tool.schema, kName));
    ASSERT_TRUE(loose) << loose.error().message;
    const auto strict =
        compile({.kind = GrammarSource::Kind::kJsonSchema, .text = tool.schema, .choices = {}});
    EXPECT_EQ(strict.has_value(), (*loose)->left_out().empty());
    if (strict) continue;
    const bool named = std::ranges::any_of(left_out(**loose), [&](const std::string& name) {
      const std::string keyword = "'" + name.substr(0, name.find(' ')) + "'";
      return strict.error().message.find(keyword) != std::string::npos;
    });
    EXPECT_TRUE(named || strict.error().message.find("not valid") != std::string::npos)
        << strict.error().message;
  }
}

std::string in_words(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

TEST(LooseSchemas, LeaveOutWhatCannotBeEnforcedAndNothingElse) {
  struct Case {
    const char* schema;
    const char* left_out;
    const char* yes;
    const char* no;
  };
  const Case cases[] = {
      {R"({"properties":{"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},
           "n":{"enum":[1]}},"required":["n"]})",
       "uniqueItems at /properties/tags", R"({"tags":["a","a"],"n":1})", R"({"tags":["a"]})"},
      {R"({"properties":{"a":{"$ref":"https://example.com/a"},"b":{"type":"null"}},
           "required":["a","b"]})",
       "$ref at /properties/a", R"({"a":[1],"b":null})", R"({"a":1,"b":1})"},
      {R"({"properties":{"a":{"type":"text","maxLength":2}},"required":["a"]})",
       "type at /properties/a", R"({"a":"xy"})", "{}"},
      {R"({"properties":{"a":{"type":"string","pattern":"\\bx","format":"nonsense","maxLength":3}},
           "required":true})",
       "format at /properties/a, pattern at /properties/a, required", R"({"a":"qqq"})",
       R"({"a":"long"})"},
      {R"({"properties":{"a":{"oneOf":[{"items":{}},{"type":"null"},{"items":{"type":"null"}}]}}})",
       "oneOf (read as anyOf) at /properties/a", R"({"a":[null]})", R"({"b":1})"},
      // Within `not` and `if` nothing is left out: what would be left says something else.
      {R"({"properties":{"a":{"type":"string"},"b":{}},
           "not":{"properties":{"a":{"$ref":"x:y"}}},"required":["a"]})",
       "not", R"({"a":"s"})", R"({"a":1})"},
      {R"({"properties":{"a":{"type":"string"},"b":{}},
           "if":{"properties":{"a":{"pattern":"\\b"}}},"then":{"required":["b"]}})",
       "if", R"({"a":"s"})", R"({"a":1})"},
      {R"({"properties":{"a":{"oneOf":[{"multipleOf":2},{"multipleOf":3}],"type":"integer"}}})",
       "oneOf (read as anyOf) at /properties/a", R"({"a":9})", R"({"a":7})"},
      {R"({"properties":{"a":"string","b":{"type":"null"}},"required":["b"]})",
       "the schema at /properties/a", R"({"a":1,"b":null})", R"({"a":1})"},
      // What additionalProperties is about is not known without patternProperties.
      {R"({"patternProperties":{"\\bx":{"type":"null"}},"additionalProperties":false,
           "required":["x"]})",
       "patternProperties", R"({"x":1})", "{}"},
      {R"({"properties":{"a":{"type":"string","pattern":"(a|b)*a(a|b){40}"},"b":{"type":"null"}}})",
       "pattern at /properties/a", R"({"a":"zz"})", R"({"b":1})"},
      {R"({"properties":{"a":{}},"minProperties":5,"additionalProperties":{"type":"integer"}})",
       "minProperties", R"({"a":1,"b":2})", R"({"b":null})"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.schema);
    const std::string schema = R"({"type":"object",)" + std::string(c.schema).substr(1);
    auto automaton = compile(loose_schema(schema, kName));
    ASSERT_TRUE(automaton) << automaton.error().message;
    EXPECT_EQ(in_words(left_out(**automaton)), c.left_out);
    const std::shared_ptr<const Automaton> shared = std::move(*automaton);
    EXPECT_TRUE(matches(shared, c.yes)) << c.yes;
    EXPECT_FALSE(matches(shared, c.no)) << c.no;
  }
}

// {"any": [...]} of loose schemas, each after its number.
GrammarSource choice_of(const std::vector<std::string>& schemas) {
  GrammarSource source;
  source.kind = GrammarSource::Kind::kParts;
  JsonWriter json(source.text);
  json.begin_object().key("any").begin_array();
  for (size_t i = 0; i < schemas.size(); ++i) {
    json.begin_object().key("seq").begin_array();
    json.begin_object().field("text", std::to_string(i) + " ").end_object();
    json.begin_object().key("schema").raw(schemas[i]);
    json.field("loose", "tools[" + std::to_string(i) + "]").end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return source;
}

TEST(LooseSchemas, AreGivenUpOneByOneWhereTheyAreTooMuchTogether) {
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 5000; ++i)
    wide += (i ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"type":"string","maxLength":900})";
  wide += "}}";
  const std::string small = R"({"type":"object","properties":{"a":{"enum":[1]}},"required":["a"]})";
  const std::string nothing = R"({"type":"object","properties":{"a":false},"required":["a"]})";
  std::vector<std::string> schemas{small, wide, small};
  for (int i = 0; i < 30; ++i)
    schemas.push_back(wide.substr(0, wide.size() - 2) + R"(,"q)" + std::to_string(i) + R"(":{}}})");
  auto automaton = compile(choice_of(schemas));
  ASSERT_TRUE(automaton) << automaton.error().message;
  EXPECT_GE((*automaton)->left_out().size(), 1u);
  for (const std::string& name : (*automaton)->left_out())
    EXPECT_TRUE(name.ends_with(": the whole schema")) << name;
  const std::shared_ptr<const Automaton> shared = std::move(*automaton);
  for (const char* number : {"0 ", "2 "}) {
    EXPECT_TRUE(matches(shared, std::string(number) + R"({"a":1})"));
    EXPECT_FALSE(matches(shared, std::string(number) + "{}"));
  }
  std::string deep = "{}";
  for (int i = 0; i < 120; ++i) deep = R"({"items":)" + deep + "}";
  auto object = compile(choice_of({R"({"type":"object","a":)" + deep + "}"}));
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ((*object)->left_out(), std::vector<std::string>{"tools[0]: the whole schema"});
  // A function of which no call is valid is an object, where it is all that may come.
  auto impossible = compile(choice_of({nothing}));
  ASSERT_TRUE(impossible) << impossible.error().message;
  EXPECT_EQ((*impossible)->left_out(), std::vector<std::string>{"tools[0]: the whole schema"});
}

}  // namespace
}  // namespace weir::grammar
