// JSON Schema's public test suite, draft 2020-12: which schemas we take, which valid instances
// their grammars allow, and that no invalid one is allowed. The suite is not part of this
// repository: WEIR_SCHEMA_SUITE names a checkout of json-schema-org/JSON-Schema-Test-Suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/json.h"
#include "grammar/json_schema.h"
#include "matching.h"

namespace weir::grammar {
namespace {

namespace fs = std::filesystem;

Result<std::shared_ptr<const Automaton>> compiled_schema(std::string_view schema) {
  Grammar grammar;
  WEIR_ASSIGN(const ExprId body, json_schema(grammar, schema, SchemaReading::kAsWritten));
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, body);
  WEIR_ASSIGN(auto automaton, compile(std::move(grammar)));
  return std::shared_ptr<const Automaton>(std::move(automaton));
}

// The value as compact JSON, objects' members in every order (of the outermost object, and up to
// five members; deeper ones as they are).
std::vector<std::string> spellings(JsonValue value) {
  std::vector<std::string> result;
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS || object.size() < 2 || object.size() > 5) {
    JsonWriter(result.emplace_back()).value(value);
    return result;
  }
  std::vector<std::string> members;
  for (const auto [key, member] : object) {
    std::string& text = members.emplace_back();
    append_json_string(text, key);
    text += ':';
    JsonWriter(text).value(member);
  }
  std::ranges::sort(members);
  do {
    std::string text = "{";
    for (const std::string& member : members) text += (text.size() > 1 ? "," : "") + member;
    result.push_back(text + "}");
  } while (std::next_permutation(members.begin(), members.end()));
  return result;
}

// By value, so that a loop over it keeps it alive.
JsonArray array_of(JsonValue value) { return value.get_array().value_unsafe(); }

struct Tally {
  int schemas = 0, refused = 0;
  int valid = 0, allowed = 0;  // Instances of schemas that were taken.
  int invalid = 0, forbidden = 0;
};

// What a schema without any sentence says: then every instance must be invalid.
bool says_nothing_is_allowed(const Error& error) {
  return error.message.find("no output at all") != std::string::npos;
}

void run_case(JsonObject test_case, Tally& tally, bool verbose) {
  std::string schema;
  JsonWriter(schema).value(*json_get(test_case, "schema"));
  ++tally.schemas;
  const auto automaton = compiled_schema(schema);
  if (!automaton && !says_nothing_is_allowed(automaton.error())) {
    if (verbose) std::printf("  refused: %s\n", automaton.error().message.c_str());
    ++tally.refused;
    return;
  }
  for (const JsonValue test : array_of(*json_get(test_case, "tests"))) {
    const JsonObject object = test.get_object().value_unsafe();
    const bool valid = json_get(object, "valid")->get_bool().value_unsafe();
    const std::vector<std::string> texts = spellings(object["data"].value_unsafe());
    const bool allowed = automaton && std::ranges::any_of(texts, [&](const std::string& text) {
                           return matches(*automaton, text);
                         });
    (valid ? tally.valid : tally.invalid) += 1;
    if (valid) tally.allowed += allowed;
    if (!valid) tally.forbidden += !allowed;
    if (!valid && allowed)
      ADD_FAILURE() << "an invalid instance is allowed: " << texts[0] << "\nby " << schema;
    if (valid && !allowed && verbose)
      std::printf("  not made: %s\n    by %s\n", texts[0].c_str(), schema.c_str());
  }
}

TEST(SchemaSuite, NoInvalidInstanceIsAllowed) {
  const char* suite = std::getenv("WEIR_SCHEMA_SUITE");
  if (!suite) GTEST_SKIP() << "WEIR_SCHEMA_SUITE is not set";
  const bool verbose = std::getenv("WEIR_SCHEMA_SUITE_VERBOSE") != nullptr;
  std::vector<fs::path> files;
  const fs::path folder = fs::path(suite) / "tests" / "draft2020-12";
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  for (const char* format : {"date", "time", "date-time", "duration", "email", "hostname", "ipv4",
                             "ipv6", "uuid", "uri", "json-pointer"})
    files.push_back(folder / "optional" / "format" / (std::string(format) + ".json"));
  std::ranges::sort(files);
  Tally all;
  std::printf("%-28s %9s %9s %11s %11s\n", "file", "schemas", "taken", "valid", "invalid");
  for (const fs::path& path : files) {
    if (path.extension() != ".json") continue;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const auto doc = JsonDoc::parse(text.str());
    if (!doc) continue;  // Numbers beyond 64 bits.
    Tally tally;
    for (const JsonValue test_case : array_of(doc->root()))
      run_case(test_case.get_object().value_unsafe(), tally, verbose);
    std::printf("%-28s %9d %9d %5d/%5d %5d/%5d\n", path.stem().c_str(), tally.schemas,
                tally.schemas - tally.refused, tally.allowed, tally.valid, tally.forbidden,
                tally.invalid);
    all.schemas += tally.schemas, all.refused += tally.refused;
    all.valid += tally.valid, all.allowed += tally.allowed;
    all.invalid += tally.invalid, all.forbidden += tally.forbidden;
  }
  std::printf("%-28s %9d %9d %5d/%5d %5d/%5d\n", "all", all.schemas, all.schemas - all.refused,
              all.allowed, all.valid, all.forbidden, all.invalid);
  EXPECT_GT(all.schemas, 300);
}

}  // namespace
}  // namespace weir::grammar
