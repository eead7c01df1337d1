// Reasoning in outputs: between its markers, opened by the prompt, cut, shown as content.
#include "api/output/output_fixture.h"

namespace weir::api::output {
namespace {

TEST(Reasoning, IsWhereTheOutputBegins) {
  const ParserOptions options = parser_options({}, "think");
  EXPECT_EQ(parse(options, "<think>\nOne, two.\n</think>\n\nThree."), "⟨One, two.⟩Three.");
  EXPECT_EQ(parse(options, "\n<think>a <b> </thin</think>c"), "⟨a <b> </thin⟩c");
  EXPECT_EQ(parse(options, "<think>\n\n</think>\n\nThree. "), "Three. ");
  EXPECT_EQ(parse(options, "<think>\nOne, tw"), "⟨One, tw⟩");
  EXPECT_EQ(parse(options, "<think>\nOne </thi"), "⟨One </thi⟩");
  for (const char* text : {"Three.", "By <think> I mean </think>.", "<thin", "<thing>", " ", ""})
    EXPECT_EQ(parse(options, text), text);
}

TEST(Reasoning, MayBeOpenedByThePrompt) {
  ParserOptions options = parser_options({}, "think");
  options.begins_in_reasoning = true;
  EXPECT_EQ(parse(options, "\nOne.\n</think>\nThree."), "⟨One.⟩Three.");
  EXPECT_EQ(parse(options, "</think>\n\nThree."), "Three.");
}

TEST(Reasoning, MayStayInTheContent) {
  ParserOptions options = parser_options("hermes", "think");
  options.reasoning_is_content = true;
  EXPECT_EQ(parse(options, "<think>\nI use <tool_call>.\n</think>\n\nThree."),
            "<think>\nI use <tool_call>.\n</think>\n\nThree.");
  EXPECT_EQ(parse(options, "<think>\nHm </thi"), "<think>\nHm </thi");
}

TEST(Reasoning, HoldsNoCalls) {
  const ParserOptions options = parser_options("hermes", "think");
  EXPECT_EQ(parse(options,
                  "<think><tool_call>{\"name\": \"now\"}</tool_call></think>\n<tool_call>"
                  "{\"name\": \"now\"}</tool_call>"),
            "⟨<tool_call>{\"name\": \"now\"}</tool_call>⟩«now:{}»");
  const ParserOptions bare = parser_options("llama3", "think");
  EXPECT_EQ(parse(bare, "<think>Hm</think>{\"name\": \"now\", \"parameters\": {}}"),
            "⟨Hm⟩«now:{}»");
}

TEST(Reasoning, HasOtherMarkersToo) {
  EXPECT_EQ(parse(parser_options({}, "mistral"), "[THINK]a[/THINK]b"), "⟨a⟩b");
  EXPECT_EQ(parse(parser_options({}, "seed"), "<seed:think>a</seed:think>b"), "⟨a⟩b");
  EXPECT_EQ(parse(parser_options({}, "gemma"), "<|channel>thought\na\n<channel|>b"), "⟨a⟩b");
  EXPECT_EQ(parse(parser_options({}, "granite"),
                  "Here is my thought process:\na\n\nHere is my response:\nb"),
            "⟨a⟩b");
  ParserOptions apriel = parser_options({}, "apriel");
  apriel.begins_in_reasoning = true;
  EXPECT_EQ(parse(apriel, "\na\n[BEGIN FINAL RESPONSE]\nb"), "⟨a⟩b");
}

TEST(Reasoning, IsAMessageBeforeTheAnswers) {
  const ParserOptions options = parser_options("solar_open", "solar_open");
  const std::string_view answer = "<|begin|>assistant<|content|>b";
  EXPECT_EQ(parse(options, "<|think|>a<|end|><|begin|>assistant<|content|>b"), "⟨a⟩b");
  EXPECT_EQ(parse(options, answer), "b");
  EXPECT_EQ(parse(options, "<|content|>b <|content|>"), "b <|content|>");
  EXPECT_EQ(parse(options, "<|think|>a<|end|>b"), "⟨a⟩b");
  EXPECT_EQ(parse(options, "<|think|>a<|end|><|begin|>assis"), "⟨a⟩<|begin|>assis");
  EXPECT_EQ(parse(options, "<|conten"), "<|conten");
  ParserOptions shown = options;
  shown.reasoning_is_content = true;
  EXPECT_EQ(parse(shown, answer), answer);
}

}  // namespace
}  // namespace weir::api::output
