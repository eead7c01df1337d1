// Strict functions where calls are free to come: in every format, whatever the grammar lets through
// is read as calls whose arguments satisfy the schema, and text without calls stays possible.
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "api/output/call_grammar.h"
#include "api/output/output_fixture.h"
#include "base/json.h"
#include "grammar/json_validator.h"
#include "grammar/matcher.h"
#include "grammar/source.h"

namespace weir::api::output {
namespace {

using grammar::Automaton;
using grammar::GrammarSource;
using grammar::Matcher;
using grammar::MatchScratch;
using grammar::TokenTrie;

constexpr std::string_view kSchema =
    R"({"type":"object","properties":{"city":{"type":"string","maxLength":6},)"
    R"("days":{"enum":[1,2]},"exact":{"type":"boolean"}},"required":["city","days"],)"
    R"("additionalProperties":false})";

CallBinding strict_binding(const CallFormat& format, bool parallel) {
  CallBinding binding;
  binding.format = &format;
  binding.functions = {{"get_weather", std::string(kSchema), true}};
  binding.parallel = parallel;
  return binding;
}

Matcher start(const CallBinding& binding) {
  static const auto trie = [] {
    static std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const TokenTrie>(
        std::vector<std::string_view>(bytes.begin(), bytes.end()));
  }();
  auto automaton = grammar::compile(
      {.kind = GrammarSource::Kind::kParts, .text = calls_part(binding), .choices = {}});
  EXPECT_TRUE(automaton) << automaton.error().message;
  return Matcher(std::shared_ptr<const Automaton>(std::move(*automaton)), trie);
}

// What calls begin with, after some text where that is possible.
std::string beginning(const CallFormat& format) {
  if (format.messages)
    return "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>c";
  if (format.begins.empty()) return std::string(format.grammar.section_begin);
  for (const std::string_view marker : format.begins)
    if (format.grammar.section_begin.starts_with(marker)) return "Hm. " + std::string(marker);
  return "Hm. " + std::string(format.begins.front());
}

// Goes on at random; ends soon after it may.
bool wander(Matcher& matcher, std::mt19937& random, std::string& text) {
  MatchScratch scratch;
  std::vector<uint64_t> mask(matcher.trie().mask_words());
  for (int i = 0; i < 3000; ++i) {
    if (matcher.must_end() || (matcher.may_end() && random() % 4 == 0)) return true;
    matcher.fill_mask(mask, scratch);
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < matcher.trie().vocab_size(); ++token)
      if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) allowed.push_back(token);
    if (allowed.empty()) return false;
    const int32_t token = allowed[random() % allowed.size()];
    text += matcher.trie().bytes(token);
    EXPECT_TRUE(matcher.accept(token, scratch));
  }
  return false;
}

// The arguments of all calls, each a valid object; returns how many there are.
int check_calls(const ParserOptions& options, const std::string& text) {
  const auto parser = make_parser(options);
  Pieces pieces;
  parser->push(text, pieces);
  parser->finish(pieces);
  const auto schema = JsonDoc::parse(kSchema);
  int calls = 0;
  std::string arguments;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].kind == PieceKind::kCallBegin) arguments.clear();
    if (pieces[i].kind == PieceKind::kCallArguments) arguments += pieces[i].text;
    if (pieces[i].kind != PieceKind::kCallEnd) continue;
    ++calls;
    const auto value = JsonDoc::parse(arguments);
    EXPECT_TRUE(value && grammar::JsonValidator(schema->root()).valid(value->root()))
        << arguments << "\nin " << text;
  }
  return calls;
}

class StrictCalls : public testing::TestWithParam<std::string> {
 protected:
  const CallFormat& format() const { return *find_calls(GetParam()); }
};

TEST_P(StrictCalls, AreAlwaysValidOnceTheyHaveBegun) {
  ParserOptions options;
  options.calls = &format();
  options.functions = {{"get_weather", {"city"}}};
  std::mt19937 random(5);
  int checked = 0;
  for (int i = 0; i < 60; ++i) {
    options.parallel = i % 2 == 0;
    options.calls_bound = i % 3 == 0;
    Matcher matcher = start(strict_binding(format(), options.parallel));
    MatchScratch scratch;
    std::string text = beginning(format());
    ASSERT_TRUE(matcher.accept(text, scratch)) << text;
    if (!wander(matcher, random, text)) continue;
    EXPECT_GE(check_calls(options, text), 1) << text;
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

TEST_P(StrictCalls, LeaveTextFree) {
  Matcher matcher = start(strict_binding(format(), true));
  MatchScratch scratch;
  std::string text = format().messages ? "<|channel|>final<|message|>" : "";
  text += "It is 5 < 6 {sic}, [as] said: \"fine\".\n";
  ASSERT_TRUE(matcher.accept(text, scratch));
  EXPECT_TRUE(matcher.may_end());
}

TEST_P(StrictCalls, RefuseWhatTheSchemaForbids) {
  const Matcher begun = [&] {
    Matcher matcher = start(strict_binding(format(), true));
    MatchScratch scratch;
    const CallGrammar& grammar = format().grammar;
    std::string text = format().bare.empty() || !format().begins.empty() ? beginning(format()) : "";
    const std::string_view begin = grammar.section_begin;
    if (format().messages) {
      text.pop_back();
      text.resize(text.size() - std::string_view("<|channel|>").size());
      text += begin;
    } else {
      for (const std::string_view marker : format().begins)
        if (begin.starts_with(marker)) text += begin.substr(marker.size());
      if (text.empty()) text = begin;
    }
    text += std::string(grammar.call_begin) + "get_weather" + std::string(grammar.after_name);
    for (const auto& [from, to] : {std::pair("\v", ""), std::pair("\a", "0")})
      for (size_t at = 0; (at = text.find(from)) != std::string::npos;) text.replace(at, 1, to);
    EXPECT_TRUE(matcher.accept(text, scratch)) << text;
    return matcher;
  }();
  const auto takes = [&](std::string_view arguments) {
    Matcher matcher = begun;
    MatchScratch scratch;
    return matcher.accept(arguments, scratch);
  };
  EXPECT_TRUE(takes(R"({"city": "Bern", "days": 2})"));
  EXPECT_FALSE(takes(R"({"city": "Bern", "days": 3)"));
  EXPECT_FALSE(takes(R"({"city": "Bern"})"));
  EXPECT_FALSE(takes(R"({"city": 5)"));
  EXPECT_FALSE(takes(R"({"city": "much too long")"));
}

TEST(StrictCallsWithoutAMarker, AreAllOfAnAnswerThatBeginsAsACall) {
  for (const char* name : {"llama3", "pythonic"}) {
    const Matcher begun = start(strict_binding(*find_calls(name), true));
    const auto takes = [&](std::string_view text) {
      Matcher matcher = begun;
      MatchScratch scratch;
      return matcher.accept(text, scratch) && matcher.may_end();
    };
    const std::string call =
        R"({"name": "get_weather", "parameters": {"city": "Bern", "days": 2}})";
    EXPECT_TRUE(takes(call));
    EXPECT_TRUE(takes("\n" + call + "; " + call));
    EXPECT_FALSE(takes(call + " Done."));
    EXPECT_FALSE(takes(R"({"answer": 42})"));
    EXPECT_FALSE(takes("  " + call));
    EXPECT_TRUE(takes("Here: " + call));  // Text: nobody reads a call there.
    EXPECT_TRUE(takes(""));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const CallFormat& format : call_formats()) all.emplace_back(format.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Formats, StrictCalls, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace weir::api::output
