// Each format of calls: what models write, whole and cut anywhere, and what is not quite a call.
#include "api/output_fixture.h"

namespace weir::api::output {
namespace {

TEST(Calls, Hermes) {
  const ParserOptions options = parser_options("hermes");
  EXPECT_EQ(parse(options,
                  "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                  "{\"city\": \"Bern, \\\"CH\\\"\"}}\n</tool_call>"),
            "Let me look.«get_weather:{\"city\": \"Bern, \\\"CH\\\"\"}»");
  EXPECT_EQ(parse(options,
                  "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":[2,{}]}}"
                  "</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n"
                  "</tool_call>\n"),
            "«add:{\"a\":1,\"b\":[2,{}]}»«now:{}»");
  // The end is missing; the arguments come first, or are missing, or are a text.
  EXPECT_EQ(parse(options, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}"), "«now:{}»");
  EXPECT_EQ(parse(options, "<tool_call>{\"arguments\": {\"a\": 1}, \"id\": 7, \"name\": \"add\"}"),
            "«add:{\"a\": 1}»");
  EXPECT_EQ(parse(options, "<tool_call>{\"name\": \"now\"}</tool_call>"), "«now:{}»");
  EXPECT_EQ(parse(options, R"(<tool_call>{"name": "add", "arguments": "{\"a\": 1}"}</tool_call>)"),
            "«add:{\"a\": 1}»");
}

TEST(Calls, WhatDoesNotParseIsContent) {
  const ParserOptions options = parser_options("hermes");
  for (const char* text : {
           "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Be",  // Cut.
           "<tool_call>",
           " <tool_call> ",
           "a < b and <tool_cal> or <tool_",
           "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"add\", \"arguments\": [1]}</tool_call>",
           "<tool_call>{\"name\": \"add\", \"arguments\": {a: 1}}</tool_call>",
           "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": nulll}}</tool_call>",
           "<tool_call>call it</tool_call>",
           "The form is <tool_call>...</tool_call>.",
           "",
           " \n ",
       })
    EXPECT_EQ(parse(options, text), text);
  // A call behind one that is none, and text behind a call.
  EXPECT_EQ(parse(options,
                  "<tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}"
                  "</tool_call> Done. "),
            "<tool_call>\n«now:{}»Done. ");
  EXPECT_EQ(parse(options, "<tool_call>{\"name\": \"now\", \"arguments\": {}}\n{\"name\": 5}"),
            "«now:{}»\n{\"name\": 5}");
}

TEST(Calls, OneIsAllWhereNoMoreAreAsked) {
  ParserOptions options = parser_options("hermes");
  options.parallel = false;
  EXPECT_EQ(parse(options, "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>{}"),
            "«now:{}»<tool_call>{}");
}

TEST(Calls, BoundOnesComeAsTheyAreWritten) {
  ParserOptions options = parser_options("hermes");
  options.calls_bound = true;
  EXPECT_EQ(parse(options, "Hm. <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2"),
            "Hm.«add:{\"a\": 1, \"b\": 2");
  const auto parser = make_parser(options);
  Pieces pieces;
  parser->push("<tool_call>{\"name\": \"add\", \"argu", pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "add");
}

TEST(Calls, HoldBackNoMoreThanAMarkersBeginning) {
  const ParserOptions options = parser_options("hermes");
  const auto parser = make_parser(options);
  Pieces pieces;
  parser->push("Some text \n<tool_", pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "Some text");
  pieces.clear();
  parser->push("box", pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, " \n<tool_box");
}

TEST(Calls, HoldNoMoreThanTheirLimit) {
  const ParserOptions options = parser_options("hermes");
  const auto parser = make_parser(options);
  Pieces pieces;
  std::string sent = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"";
  parser->push(sent, pieces);
  EXPECT_TRUE(pieces.empty());
  const std::string more(1000, 'x');
  for (int i = 0; i < 400; ++i) {
    parser->push(more, pieces);
    sent += more;
  }
  parser->finish(pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, sent);
}

TEST(Calls, Llama) {
  const ParserOptions options = parser_options("llama3");
  EXPECT_EQ(parse(options, "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rom\"}}"),
            "«get_weather:{\"city\": \"Rom\"}»");
  EXPECT_EQ(parse(options,
                  "<|python_tag|>{\"name\": \"add\", \"parameters\": {\"a\": 1}}; "
                  "{\"name\": \"now\", \"parameters\": {}}"),
            "«add:{\"a\": 1}»«now:{}»");
  EXPECT_EQ(parse(options, "{\"type\": \"function\", \"name\": \"now\", \"parameters\": {}}"),
            "«now:{}»");
  for (const char* text : {"{\"answer\": 42}", "{\"name\": \"Ada\"}", "{", "{\"name\": \"now\"}",
                           "See {\"name\": \"now\", \"parameters\": {}}", "{\"name\": \"now\", ",
                           "<|python_tag|>print(1)"})
    EXPECT_EQ(parse(options, text), text);
}

TEST(Calls, Mistral) {
  for (const char* name : {"mistral", "mistral_args"}) {
    const ParserOptions options = parser_options(name);
    EXPECT_EQ(parse(options,
                    "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}}, "
                    "{\"name\": \"now\", \"arguments\": {}, \"id\": \"123456789\"}]"),
              "«add:{\"a\": 1}»«now:{}»");
    EXPECT_EQ(parse(options,
                    "Yes. [TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]now[CALL_ID]Ab3[ARGS]"
                    "{}"),
              "Yes.«add:{\"a\": 1}»«now#Ab3:{}»");
    EXPECT_EQ(parse(options, "[TOOL_CALLS]other[ARGS]{}"), "[TOOL_CALLS]other[ARGS]{}");
  }
}

TEST(Calls, Deepseek) {
  EXPECT_EQ(
      parse(parser_options("deepseek_v3"),
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n"
            "{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n"
            "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
      "«add:{\"a\": 1}»«now:{}»");
  EXPECT_EQ(
      parse(parser_options("deepseek_v31", "think"),
            "<think>\nHm.\n</think>\n\nOK.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add"
            "<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}"
            "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
      "⟨Hm.⟩OK.«add:{\"a\": 1}»«now:{}»");
  const char* cut = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\"";
  EXPECT_EQ(parse(parser_options("deepseek_v31"), cut), cut);
}

TEST(Calls, Kimi) {
  EXPECT_EQ(parse(parser_options("kimi_k2"),
                  "Now.<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"
                  "<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_call_begin|>"
                  "functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
                  "<|tool_calls_section_end|>"),
            "Now.«add#functions.add:0:{\"a\": 1}»«now#functions.now:1:{}»");
}

TEST(Calls, OthersThatWriteJson) {
  const std::string list =
      R"([{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}])";
  const std::string found = "«add:{\"a\": 1}»«now:{}»";
  EXPECT_EQ(parse(parser_options("granite"), "<|tool_call|>" + list), found);
  EXPECT_EQ(parse(parser_options("granite"), "<|tool_call|>" + list + "<|/tool_call|>"), found);
  EXPECT_EQ(parse(parser_options("nemotron"), "<TOOLCALL>" + list + "</TOOLCALL>"), found);
  EXPECT_EQ(parse(parser_options("tool_calls"), "Hm\n<tool_calls>" + list + "</tool_calls>"),
            "Hm" + found);
  EXPECT_EQ(parse(parser_options("firefunction"), " functools" + list), found);
  EXPECT_EQ(parse(parser_options("json"), list), found);
  EXPECT_EQ(parse(parser_options("json"), "[1, 2]"), "[1, 2]");
  EXPECT_EQ(parse(parser_options("command"),
                  "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"add\", "
                  "\"parameters\": {\"a\": 1}}\n]<|END_ACTION|>"),
            "«add:{\"a\": 1}»");
  EXPECT_EQ(parse(parser_options("functionary"),
                  "<function=add>{\"a\": 1}</function>"
                  "<function=now>{}</function>"),
            found);
}

}  // namespace
}  // namespace weir::api::output
