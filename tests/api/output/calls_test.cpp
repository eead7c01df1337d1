// Each format of calls: what models write, whole and cut anywhere, and what is not quite a call.
#include "api/output/output_fixture.h"

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
  // A call after one that is none, and text after a call.
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

TEST(Calls, SolarOpen) {
  const ParserOptions options = parser_options("solar_open", "solar_open");
  EXPECT_EQ(parse(options,
                  "<|think|>Hm<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5"
                  "<|tool_call:name|>add<|tool_call:args|>{\"a\": 1}<|tool_call:end|>"
                  "<|tool_call:begin|>f6g7h8i9j0<|tool_call:name|>now<|tool_call:args|>{}"
                  "<|tool_call:end|><|calls|>"),
            "⟨Hm⟩«add#a1b2c3d4e5:{\"a\": 1}»«now#f6g7h8i9j0:{}»");
  // The end of the section ends the answer, and need not be there.
  EXPECT_EQ(parse(options,
                  "<|tool_calls|><|tool_call:begin|>0<|tool_call:name|>now<|tool_call:args|>{}"
                  "<|tool_call:end|>"),
            "«now#0:{}»");
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

TEST(Calls, QwenCoder) {
  const ParserOptions options = parser_options("qwen3_coder");
  const std::string call =
      "<function=write_file>\n<parameter=path>\n/tmp/a\n</parameter>\n<parameter=text>\n\n<b>1</b>"
      "\n{\"x\"}\n</parameter>\n</function>\n</tool_call>";
  const std::string found =
      "«write_file:{\"path\": \"/tmp/a\", \"text\": \"\\n<b>1</b>\\n{\\\"x\\\"}\"}»";
  EXPECT_EQ(parse(options, "I write.\n\n<tool_call>\n" + call), "I write." + found);
  EXPECT_EQ(parse(options, call), found);  // The outer tag is forgotten at times.
  EXPECT_EQ(parse(options,
                  "<tool_call>\n<function=add>\n<parameter=a>\n5\n</parameter>\n"
                  "<parameter=b>\n[1, 2]\n</parameter>\n<parameter=c>\nTrue\n</parameter>"
                  "\n<parameter=d>\ntwo words\n</parameter>\n</function>\n</tool_call>"
                  "\n<tool_call>\n<function=now>\n</function>\n</tool_call>"),
            "«add:{\"a\": 5, \"b\": [1, 2], \"c\": true, \"d\": \"two words\"}»«now:{}»");
  EXPECT_EQ(parse(options,
                  "<tool_call>\n<function=get_weather>\n<parameter=city>\n5\n</parameter>\n"
                  "</function>\n</tool_call>"),
            "«get_weather:{\"city\": \"5\"}»");  // The schema says that it is a string.
  for (const char* text : {"<tool_call>\n<function=add>\n<parameter=a>\n5\n</parameter>\n",
                           "<tool_call>\n<function=other>\n</function>\n</tool_call>",
                           "<function=add>\n<parameter=a>\n5", "<function=add>x</function>"})
    EXPECT_EQ(parse(options, text), text);
}

TEST(Calls, OthersThatWriteElements) {
  const std::string found = "«get_weather:{\"city\": \"Bern\"}»«add:{\"a\": 1}»";
  EXPECT_EQ(parse(parser_options("seed"),
                  "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Bern</parameter>\n"
                  "</function>\n<function=add>\n<parameter=a>1</parameter>\n</function>\n"
                  "</seed:tool_call>"),
            found);
  EXPECT_EQ(
      parse(parser_options("minimax_m2"),
            "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Bern"
            "</parameter>\n</invoke>\n<invoke name=\"add\"><parameter name=\"a\">1</parameter>"
            "</invoke>\n</minimax:tool_call>"),
      found);
  for (const std::string kind : {"function_calls", "tool_calls"})
    EXPECT_EQ(
        parse(parser_options("deepseek_v32"),
              "\n\n<｜DSML｜" + kind +
                  ">\n<｜DSML｜invoke name=\"get_weather\">\n"
                  "<｜DSML｜parameter name=\"city\" string=\"true\">Bern</｜DSML｜parameter>\n"
                  "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
                  "string=\"false\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜" +
                  kind + ">"),
        found);
  EXPECT_EQ(parse(parser_options("glm", "think"),
                  "<think>Hm</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>"
                  "Bern</arg_value>\n</tool_call>\n<tool_call>add<arg_key>a</arg_key><arg_value>1"
                  "</arg_value></tool_call>"),
            "⟨Hm⟩" + found);
  EXPECT_EQ(parse(parser_options("glm"), "<tool_call>now\n</tool_call>"), "«now:{}»");
  EXPECT_EQ(parse(parser_options("glm"), "<tool_call>add<arg_key>a"), "<tool_call>add<arg_key>a");
}

TEST(Calls, Gemma) {
  const std::string found =
      "«get_weather:{\"city\": \"Bern, \\\"CH\\\"\", \"days\": [1, 2], \"o\": {\"x y\": true}}»";
  EXPECT_EQ(
      parse(parser_options("gemma"),
            "<start_function_call>call:get_weather{city:<escape>Bern, \"CH\"<escape>,days:[1,2]"
            ",o:{x y:true}}<end_function_call>"),
      found);
  EXPECT_EQ(parse(parser_options("gemma4", "gemma"),
                  "<|channel>thought\nHm\n<channel|><|tool_call>call:get_weather{city:<|\"|>Bern, "
                  "\"CH\"<|\"|>,days:[1, 2],o:{x y:true}}<tool_call|><|tool_call>call:now{}"
                  "<tool_call|>"),
            "⟨Hm⟩" + found + "«now:{}»");
  for (const char* text : {"<|tool_call>call:now{a:1", "<|tool_call>call:now{a}<tool_call|>",
                           "<|tool_call>call:x{}<tool_call|>", "<|tool_call>now{}<tool_call|>"})
    EXPECT_EQ(parse(parser_options("gemma4"), text), text);
}

TEST(Calls, Python) {
  const std::string list =
      "[get_weather(city='Bern \\'x\\'', days=[1, (2, 3,)]), add(a=-1.5, b=None, c={'k': \"v\"}), "
      "now()]";
  const std::string found =
      "«get_weather:{\"city\": \"Bern 'x'\", \"days\": [1, [2, 3]]}»"
      "«add:{\"a\": -1.5, \"b\": null, \"c\": {\"k\": \"v\"}}»«now:{}»";
  EXPECT_EQ(parse(parser_options("lfm2"), "Hm.<|tool_call_start|>" + list + "<|tool_call_end|>OK"),
            "Hm." + found + "OK");
  EXPECT_EQ(parse(parser_options("pythonic"), list), found);
  EXPECT_EQ(parse(parser_options("pythonic"), "{\"name\": \"now\", \"parameters\": {}}"),
            "«now:{}»");
  for (const char* text : {"[1, 2]", "[now(", "[now(1)]", "[other()]", "[now(a=)]"})
    EXPECT_NE(parse(parser_options("pythonic"), text).find(text + 1), std::string::npos) << text;
}

TEST(Calls, Harmony) {
  const ParserOptions options = parser_options("harmony", "harmony");
  EXPECT_EQ(parse(options,
                  "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant"
                  "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
                  "<|channel|>commentary to=functions.add <|constrain|>json<|message|>"
                  "{\"a\": 1}<|call|>"),
            "⟨Let me see.⟩I look.«add:{\"a\": 1}»");
  EXPECT_EQ(parse(options, " to=functions.now<|channel|>commentary json<|message|>{}"), "«now:{}»");
  EXPECT_EQ(parse(options,
                  "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final"
                  "<|message|>Yes <b>.<|return|>"),
            "⟨Hm⟩Yes <b>.");
  EXPECT_EQ(parse(options, "<|channel|>final<|message|>Yes"), "Yes");
  for (const char* text : {"Yes", "<", "to be", " <|message", "a <| b"})
    EXPECT_EQ(parse(options, text), text);
  // What is no call: unknown, broken, cut.
  const std::string header = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>";
  EXPECT_EQ(parse(options, header + "{\"a\": 1"), header + "{\"a\": 1");
  EXPECT_EQ(parse(options, header + "{a}<|call|>"), header + "{a}");
  const std::string other = "<|channel|>commentary to=functions.other<|message|>";
  EXPECT_EQ(parse(options, other + "{}<|call|>"), other + "{}");
  ParserOptions shown = options;
  shown.reasoning_is_content = true;
  const char* both =
      "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Yes";
  EXPECT_EQ(parse(shown, both), both);
}

}  // namespace
}  // namespace weir::api::output
