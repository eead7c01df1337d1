// What bodies the endpoints accept and refuse, and which field an error names.
#include "api/openai/request_fields.h"

#include <gtest/gtest.h>

#include <set>

#include "api/request/sampling_fields.h"

namespace weir::api::openai {
namespace {

constexpr RequestLimits kLimits{1000};

Result<Request> chat(const std::string& more) {
  return parse_generate(Endpoint::kChat,
                        R"({"model":"m","messages":[{"role":"user","content":"Hi"}])" +
                            (more.empty() ? "" : "," + more) + "}",
                        kLimits);
}

Result<Request> completion(const std::string& more) {
  return parse_generate(Endpoint::kCompletions,
                        R"({"model":"m","prompt":"Once")" + (more.empty() ? "" : "," + more) + "}",
                        kLimits);
}

Result<Request> messages(const std::string& array) {
  return parse_generate(Endpoint::kChat, R"({"model":"m","messages":)" + array + "}", kLimits);
}

std::string json_quoted(std::string_view text) {
  std::string out;
  out.append("\"").append(text).append("\"");
  return out;
}

void expect_refused(const Result<Request>& result, const std::string& param,
                    const std::string& kind, const std::string& what) {
  ASSERT_FALSE(result.has_value()) << what;
  EXPECT_EQ(result.error().param, param) << what;
  EXPECT_EQ(result.error().kind, kind) << what << ": " << result.error().message;
  if (!param.empty()) {
    EXPECT_NE(result.error().message.find(std::string(1, '\'').append(param).append("'")),
              std::string::npos)
        << result.error().message;
  }
}

TEST(GenerateRequest, LeavesOutWhatTheBodyLeavesOut) {
  const auto request = chat("");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->messages, R"([{"role":"user","content":"Hi"}])");
  EXPECT_FALSE(request->temperature || request->top_p || request->seed || request->n ||
               request->max_tokens);
  EXPECT_FALSE(request->stream || request->logprobs || request->ignore_eos);
  EXPECT_TRUE(request->skip_special_tokens);
  EXPECT_EQ(request->add_generation_prompt, std::nullopt);
  EXPECT_EQ(request->choices_per_prompt(), 1);
}

TEST(GenerateRequest, ReadsEveryField) {
  const auto request = chat(R"(
      "temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"typical_p":0.95,
      "repetition_penalty":1.1,"frequency_penalty":-2,"presence_penalty":2.0,
      "logit_bias":{"7":-100,"999":1.5},"seed":-9223372036854775808,"max_tokens":5,
      "max_completion_tokens":16.0,"min_tokens":3,"stop":["a","","b"],"stop_token_ids":[1,2],
      "ignore_eos":true,"include_stop_str_in_output":true,"n":3,"stream":true,
      "stream_options":{"include_usage":true,"include_obfuscation":false},
      "skip_special_tokens":false,"logprobs":true,"top_logprobs":20,"cache_salt":"s","priority":3,
      "chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low",
      "add_generation_prompt":false,"tool_choice":"auto","response_format":{"type":"text"},
      "modalities":["text"],"user":"u","metadata":{"a":1},"unknown_field":[1,{"x":null}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->temperature, 0.5);
  EXPECT_EQ(request->top_p, 0.9);
  EXPECT_EQ(request->top_k, 40);
  EXPECT_EQ(request->min_p, 0.05);
  EXPECT_EQ(request->typical_p, 0.95);
  EXPECT_EQ(request->repetition_penalty, 1.1);
  EXPECT_EQ(request->frequency_penalty, -2);
  EXPECT_EQ(request->presence_penalty, 2);
  EXPECT_EQ(request->logit_bias,
            (std::vector<std::pair<int32_t, float>>{{7, -100.f}, {999, 1.5f}}));
  EXPECT_EQ(request->seed, INT64_MIN);
  EXPECT_EQ(request->token_limit(), 16);
  EXPECT_EQ(request->min_tokens, 3);
  EXPECT_EQ(request->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->stop_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(request->ignore_eos && request->include_stop_str_in_output && request->stream &&
              request->include_usage && request->logprobs);
  EXPECT_FALSE(request->skip_special_tokens);
  EXPECT_EQ(request->add_generation_prompt, false);
  EXPECT_EQ(request->n, 3);
  EXPECT_EQ(request->top_logprobs, 20);
  EXPECT_EQ(request->cache_salt, "s");
  EXPECT_EQ(request->template_kwargs, R"({"enable_thinking":false})");
  EXPECT_EQ(request->reasoning_effort, "low");
}

TEST(GenerateRequest, ReadsLlamaCppsSamplers) {
  const auto request = chat(R"(
      "top_n_sigma":1.5,"xtc_probability":0.5,"xtc_threshold":0.2,"dynatemp_range":0.3,
      "dynatemp_exponent":2,"dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":3,
      "dry_penalty_last_n":-1,"dry_sequence_breakers":["\n","Anna:"],"repeat_last_n":64,
      "repeat_penalty":1.2)");
  ASSERT_TRUE(request) << request.error().message;
  sample::SamplingParams params;
  apply_asked(*request, params);
  EXPECT_FLOAT_EQ(params.top_n_sigma, 1.5f);
  EXPECT_FLOAT_EQ(params.xtc_probability, 0.5f);
  EXPECT_FLOAT_EQ(params.xtc_threshold, 0.2f);
  EXPECT_FLOAT_EQ(params.dynatemp_range, 0.3f);
  EXPECT_FLOAT_EQ(params.dynatemp_exponent, 2);
  EXPECT_FLOAT_EQ(params.dry_multiplier, 0.8f);
  EXPECT_FLOAT_EQ(params.dry_base, 1.5f);
  EXPECT_EQ(params.dry_allowed_length, 3);
  EXPECT_EQ(params.dry_penalty_last_n, -1);
  EXPECT_EQ(params.repeat_last_n, 64);
  EXPECT_FLOAT_EQ(params.repetition_penalty, 1.2f);
  EXPECT_EQ(request->dry_sequence_breakers, (std::vector<std::string>{"\n", "Anna:"}));
  for (const char* wrong :
       {R"("dry_sequence_breakers":[""])", R"("dry_sequence_breakers":"x")", R"("dry_base":-1)",
        R"("xtc_probability":1.5)", R"("repeat_last_n":-2)", R"("top_n_sigma":"x")"})
    EXPECT_FALSE(chat(wrong)) << wrong;
}

TEST(GenerateRequest, EndsThePromptInOnePlace) {
  const std::string messages =
      R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"So"}])";
  const auto parse = [&](const std::string& more) {
    return parse_generate(Endpoint::kChat, "{" + messages + more + "}", kLimits);
  };
  EXPECT_TRUE(parse(R"(,"continue_final_message":true)"));
  EXPECT_TRUE(parse(R"(,"continue_final_message":true,"add_generation_prompt":false)"));
  EXPECT_TRUE(parse(R"(,"continue_final_message":false,"add_generation_prompt":true)"));
  const auto both = parse(R"(,"continue_final_message":true,"add_generation_prompt":true)");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(both.error().param, "add_generation_prompt");
}

TEST(GenerateRequest, TakesAnExplicitNullForAbsent) {
  for (const RequestField& field : request_fields()) {
    if (field.required) continue;
    const std::string text = json_quoted(field.name) + ":null";
    if (field.endpoints & static_cast<uint8_t>(Endpoint::kChat)) {
      EXPECT_TRUE(chat(text)) << field.name;
    }
    if (field.endpoints & static_cast<uint8_t>(Endpoint::kCompletions)) {
      EXPECT_TRUE(completion(text)) << field.name;
    }
  }
}

TEST(GenerateRequest, RefusesEveryWrongTypeByName) {
  // No field takes all of these; each is refused for every field that does not take its type.
  const std::vector<std::pair<std::string, std::string>> values = {{"boolean", "true"},
                                                                   {"number", "0.25"},
                                                                   {"string", "\"x\""},
                                                                   {"array", "[true]"},
                                                                   {"object", "{\"a\":true}"}};
  for (const RequestField& field : request_fields()) {
    if (std::holds_alternative<std::monostate>(field.target)) continue;
    for (const auto& [type, value] : values) {
      if (std::string(field.type).find(type) != std::string::npos) continue;
      if (field.help.starts_with("Not supported") || field.name == "reasoning_effort") continue;
      const bool in_chat = field.endpoints & static_cast<uint8_t>(Endpoint::kChat);
      const std::string text = json_quoted(field.name) + ":" + value;
      // A required field stands before the helpers' own, and the first of duplicates counts.
      const auto result = parse_generate(
          in_chat ? Endpoint::kChat : Endpoint::kCompletions,
          "{" + text + R"(,"model":"m","prompt":"x","messages":[{"role":"user","content":"x"}]})",
          kLimits);
      const std::string what = std::string(field.name) + " = " + value;
      ASSERT_FALSE(result) << what;
      EXPECT_EQ(result.error().code, ErrorCode::kInvalid) << what;
      EXPECT_TRUE(result.error().param.starts_with(field.name)) << what << result.error().param;
    }
  }
}

TEST(GenerateRequest, RefusesValuesOutOfRange) {
  for (const char* text :
       {R"("temperature":-0.1)", R"("temperature":2.1)", R"("top_p":1.01)", R"("top_p":-1)",
        R"("top_k":-2)", R"("min_p":2)", R"("typical_p":-1)", R"("repetition_penalty":0)",
        R"("frequency_penalty":2.5)", R"("presence_penalty":-3)", R"("n":0)", R"("n":129)",
        R"("max_tokens":0)", R"("max_tokens":-1)", R"("max_completion_tokens":0)",
        R"("min_tokens":-1)", R"("top_logprobs":21,"logprobs":true)",
        R"("top_logprobs":-1,"logprobs":true)", R"("max_tokens":1e300)"}) {
    const auto result = chat(text);
    ASSERT_FALSE(result) << text;
    const std::string name = std::string(text).substr(1, std::string(text).find('"', 1) - 1);
    EXPECT_EQ(result.error().param, name) << text;
  }
  for (const char* field : {"seed", "top_k", "stop_token_ids"}) {
    const bool list = std::string_view(field) == "stop_token_ids";
    const auto huge = chat("\"" + std::string(field) +
                           "\":" + (list ? "[18446744073709551615]" : "18446744073709551615"));
    ASSERT_FALSE(huge);
    EXPECT_NE(huge.error().message.find("up to 9223372036854775807, found 18446744073709551615"),
              std::string::npos)
        << huge.error().message;
  }
  expect_refused(chat(R"("seed":1e30)"), "seed", "invalid_type", "seed");
  expect_refused(chat(R"("max_tokens":1.5)"), "max_tokens", "invalid_type", "fraction");
  expect_refused(chat(R"("logit_bias":{"5":101})"), "logit_bias.5", "invalid_value", "bias");
  expect_refused(chat(R"("logit_bias":{"1000":1})"), "logit_bias.1000", "invalid_value", "id");
  expect_refused(chat(R"("logit_bias":{"x":1})"), "logit_bias.x", "invalid_value", "key");
  expect_refused(chat(R"("logit_bias":{"5":"1"})"), "logit_bias.5", "invalid_type", "text");
  expect_refused(chat(R"("stop_token_ids":[3,1000])"), "stop_token_ids[1]", "invalid_value", "id");
  expect_refused(chat(R"("stop":[1])"), "stop[0]", "invalid_type", "stop");
  expect_refused(completion(R"("logprobs":21)"), "logprobs", "invalid_value", "logprobs");
  expect_refused(completion(R"("logprobs":true)"), "logprobs", "invalid_type", "logprobs");
}

TEST(GenerateRequest, LimitsHowMuchAFieldMayHold) {
  const auto list = [](size_t count, const std::string& element) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text.append(i ? "," : "").append(element);
    return text + "]";
  };
  EXPECT_TRUE(chat("\"stop\":" + list(kStopStringsMax, "\"a\"")));
  EXPECT_FALSE(chat("\"stop\":" + list(kStopStringsMax + 1, "\"a\"")));
  EXPECT_FALSE(chat("\"stop\":" + json_quoted(std::string(kStopBytesMax + 1, 'a'))));
  EXPECT_TRUE(chat("\"stop_token_ids\":" + list(kStopTokenIdsMax, "1")));
  EXPECT_FALSE(chat("\"stop_token_ids\":" + list(kStopTokenIdsMax + 1, "1")));
  const std::string tool = R"({"type":"function","function":{"name":"f"}})";
  EXPECT_TRUE(chat("\"tools\":" + list(kToolsMax, tool)));
  EXPECT_FALSE(chat("\"tools\":" + list(kToolsMax + 1, tool)));
  std::string bias = "\"logit_bias\":{";
  for (size_t i = 0; i <= kLogitBiasMax; ++i)
    bias.append(i ? "," : "").append(json_quoted(std::to_string(i % 1000))).append(":1");
  EXPECT_FALSE(chat(bias + "}"));
}

TEST(GenerateRequest, ChecksWhatFieldsMeanTogether) {
  expect_refused(chat(R"("top_logprobs":2)"), "top_logprobs", "invalid_value", "no logprobs");
  EXPECT_TRUE(chat(R"("top_logprobs":0)"));
  expect_refused(chat(R"("stream_options":{"include_usage":true})"), "stream_options",
                 "invalid_value", "no stream");
  expect_refused(chat(R"("stream":true,"stream_options":{"include_usage":1})"),
                 "stream_options.include_usage", "invalid_type", "include_usage");
  expect_refused(chat(R"("min_tokens":5,"max_tokens":4)"), "min_tokens", "invalid_value", "min");
  expect_refused(chat(R"("continue_final_message":true)"), "continue_final_message",
                 "invalid_value", "user last");
  EXPECT_TRUE(completion(R"("best_of":2,"n":2)"));
  EXPECT_TRUE(completion(R"("best_of":0,"n":2)"));
  EXPECT_EQ(completion(R"("best_of":5)")->candidates_per_prompt(), 5);
  expect_refused(completion(R"("best_of":2,"n":3)"), "best_of", "invalid_value", "best_of");
  expect_refused(completion(R"("best_of":21)"), "best_of", "invalid_value", "best_of");
  expect_refused(completion(R"("best_of":2,"stream":true)"), "best_of", "invalid_value", "stream");
  expect_refused(completion(R"("max_tokens":0)"), "max_tokens", "invalid_value", "no echo");
  EXPECT_TRUE(completion(R"("max_tokens":0,"echo":true)"));
  expect_refused(completion(R"("max_tokens":-1,"echo":true)"), "max_tokens", "invalid_value", "-1");
  expect_refused(completion(R"("suffix":"x","echo":true)"), "echo", "invalid_value", "suffix");
}

TEST(GenerateRequest, RefusesWhatItCannotDoYet) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  const std::string kind = "unsupported_parameter";
  expect_refused(chat(R"("response_format":{"type":"xml"})"), "response_format.type",
                 "invalid_value", "xml");
  expect_refused(chat(R"("response_format":{})"), "response_format.type",
                 "missing_required_parameter", "none");
  expect_refused(chat(R"("tool_choice":{"type":"function","function":{"name":"g"}},)" + tools),
                 "tool_choice", "invalid_value", "another name");
  expect_refused(chat(R"("tool_choice":"sometimes")"), "tool_choice", "invalid_value", "other");
  expect_refused(chat(R"("modalities":["text","audio"])"), "modalities[1]", kind, "audio");
}

using GrammarKind = grammar::GrammarSource::Kind;

TEST(GenerateRequest, ReadsWhatBindsTheAnswerToAForm) {
  struct Case {
    const char* fields;
    GrammarKind kind;
    const char* text;
    const char* field;
  };
  for (const Case& c : {
           Case{R"("response_format":{"type":"json_object"})", GrammarKind::kJsonObject, "",
                "response_format"},
           Case{R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,
                "schema":{"type":"null"}}})",
                GrammarKind::kJsonSchema, R"({"type":"null"})",
                "response_format.json_schema.schema"},
           Case{R"("response_format":{"type":"json_object","schema":{}})", GrammarKind::kJsonSchema,
                "{}", "response_format.schema"},
           Case{R"("guided_json":"{\"const\":1}")", GrammarKind::kJsonSchema, R"({"const":1})",
                "guided_json"},
           Case{R"("guided_regex":"a+")", GrammarKind::kRegex, "a+", "guided_regex"},
           Case{R"("guided_grammar":"root ::= \"a\"")", GrammarKind::kGrammar, "root ::= \"a\"",
                "guided_grammar"},
           Case{R"("grammar":"root ::= \"a\"","guided_regex":"")", GrammarKind::kGbnf,
                "root ::= \"a\"", "grammar"},
           Case{R"("json_schema":{"type":"null"},"response_format":{"type":"text"})",
                GrammarKind::kJsonSchema, R"({"type":"null"})", "json_schema"},
           Case{R"("structured_outputs":{"regex":"b","json":null})", GrammarKind::kRegex, "b",
                "structured_outputs.regex"},
           Case{R"("structured_outputs":{"json_object":true})", GrammarKind::kJsonObject, "",
                "structured_outputs.json_object"},
       }) {
    const auto request = chat(c.fields);
    ASSERT_TRUE(request) << c.fields << ": " << request.error().message;
    ASSERT_TRUE(request->grammar) << c.fields;
    EXPECT_EQ(request->grammar->kind, c.kind) << c.fields;
    EXPECT_EQ(request->grammar->text, c.text) << c.fields;
    EXPECT_EQ(request->grammar_field, c.field);
  }
  const auto choice = chat(R"("guided_choice":["a","b"])");
  ASSERT_TRUE(choice && choice->grammar);
  EXPECT_EQ(choice->grammar->choices, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(
      chat(R"("response_format":{"type":"text"},"grammar":"","guided_choice":[])")->grammar);

  expect_refused(chat(R"("response_format":{"type":"json_schema"})"), "response_format.json_schema",
                 "missing_required_parameter", "no schema");
  expect_refused(chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})"),
                 "response_format.json_schema.schema", "missing_required_parameter", "no schema");
  expect_refused(chat(R"("guided_regex":"a","guided_choice":["a"])"), "guided_choice",
                 "invalid_value", "two constraints");
  expect_refused(chat(R"("guided_choice":["a",1])"), "guided_choice[1]", "invalid_type", "number");
  expect_refused(chat(R"("guided_json":7)"), "guided_json", "invalid_type", "number");
  expect_refused(chat(R"("structured_outputs":{"structural_tag":"x"})"),
                 "structured_outputs.structural_tag", "unsupported_parameter", "tag");
}

TEST(GenerateRequest, AcceptsWhatClientsSendWithoutMeaningIt) {
  EXPECT_TRUE(chat(R"("tool_choice":"required")"));  // LlamaIndex, without tools.
  EXPECT_TRUE(chat(R"("tools":[],"tool_choice":"auto","functions":[],"function_call":"none")"));
  EXPECT_TRUE(chat(R"("stop":[],"logit_bias":{},"stop_token_ids":[])"));
  EXPECT_TRUE(completion(R"("echo":false,"suffix":"","stop":"")"));
  EXPECT_TRUE(chat(R"("parallel_tool_calls":true,"store":true,"service_tier":"auto")"));
}

TEST(GenerateRequest, NamesTheMessageAtFault) {
  const auto path = [](const std::string& array) {
    const auto result = messages(array);
    return result ? std::string("accepted") : result.error().param;
  };
  EXPECT_EQ(path("[]"), "messages");
  EXPECT_EQ(path("{}"), "messages");
  EXPECT_EQ(path("\"x\""), "messages");
  EXPECT_EQ(path("[1]"), "messages[0]");
  EXPECT_EQ(path(R"([{"content":"x"}])"), "messages[0].role");
  EXPECT_EQ(path(R"([{"role":"user","content":"x"},{"role":"king","content":"x"}])"),
            "messages[1].role");
  EXPECT_EQ(path(R"([{"role":5,"content":"x"}])"), "messages[0].role");
  EXPECT_EQ(path(R"([{"role":"user"}])"), "messages[0].content");
  EXPECT_EQ(path(R"([{"role":"user","content":null}])"), "messages[0].content");
  EXPECT_EQ(path(R"([{"role":"user","content":7}])"), "messages[0].content");
  EXPECT_EQ(path(R"([{"role":"user","content":[]}])"), "messages[0].content");
  EXPECT_EQ(path(R"([{"role":"user","content":["x"]}])"), "messages[0].content[0]");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"text"}]}])"),
            "messages[0].content[0].text");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"text","text":"a"},
                     {"type":"image_url","image_url":{"url":"data:"}}]}])"),
            "messages[0].content[1].image_url.url");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"image_url","image_url":
                     {"url":"data:image/png;base64,AAAA","detail":"most"}}]}])"),
            "messages[0].content[0].image_url.detail");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"input_image","file_id":"f"}]}])"),
            "messages[0].content[0].file_id");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"file","file":{"file_data":
                     "data:application/pdf;base64,AAAA"}}]}])"),
            "messages[0].content[0].file.file_data");
  EXPECT_EQ(path(R"([{"role":"user","content":[{"type":"input_audio"}]}])"),
            "messages[0].content[0].input_audio");
  EXPECT_EQ(path(R"([{"role":"tool","content":"x"}])"), "messages[0].tool_call_id");
  EXPECT_EQ(path(R"([{"role":"user","content":"x","name":1}])"), "messages[0].name");
  EXPECT_EQ(path(R"([{"role":"user","content":"x","tool_calls":[{}]}])"), "messages[0].tool_calls");
  EXPECT_EQ(path(R"([{"role":"assistant","tool_calls":[{"id":"1"}]}])"),
            "messages[0].tool_calls[0].function");
  EXPECT_EQ(path(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}])"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(path(R"([{"role":"assistant","content":null}])"), "accepted");
}

TEST(GenerateRequest, RewritesMessagesAsTemplatesExpectThem) {
  const auto request = messages(R"([
      {"role":"developer","content":"Be terse."},
      {"role":"user","name":"eve","content":[{"type":"text","text":"a"},{"type":"text","text":"b\""}]},
      {"role":"assistant","content":null,"refusal":null,"reasoning_content":"hm","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"city\": \"Bern\"}"}},
        {"id":"c2","type":"function","function":{"name":"g","arguments":"not json"}}]},
      {"role":"tool","tool_call_id":"c1","content":"18"},
      {"role":"function","name":"f","content":"x","tool_call_id":"c2"}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages,
            R"([{"role":"system","content":"Be terse."},)"
            R"({"role":"user","content":"a\nb\"","name":"eve"},)"
            R"({"role":"assistant","content":"","reasoning_content":"hm","thinking":"hm",)"
            R"("tool_calls":[)"
            R"({"id":"c1","type":"function","function":{"name":"f","arguments":{"city":"Bern"}}},)"
            R"({"id":"c2","type":"function","function":{"name":"g","arguments":"not json"}}]},)"
            R"({"role":"tool","content":"18","tool_call_id":"c1"},)"
            R"({"role":"tool","content":"x","name":"f","tool_call_id":"c2"}])");
  EXPECT_EQ(request->last_role, "tool");
  EXPECT_EQ(request->last_content, "x");
}

TEST(GenerateRequest, ChecksToolsAndKeepsThem) {
  const auto request = chat(
      R"("tools":[ {"type":"function","function":{"name":"f","parameters":{"type":"object"}}} ])");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->tools,
            R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])");
  expect_refused(chat(R"("tools":[{"type":"custom"}])"), "tools[0].type", "unsupported_parameter",
                 "custom");
  expect_refused(chat(R"("tools":[{"type":"function"}])"), "tools[0].function",
                 "missing_required_parameter", "function");
  expect_refused(chat(R"("tools":[{"type":"function","function":{"name":1}}])"),
                 "tools[0].function.name", "invalid_type", "name");
}

TEST(GenerateRequest, ReadsPromptsInAllFourShapes) {
  const auto prompts = [](const std::string& prompt) {
    return parse_generate(Endpoint::kCompletions, R"({"model":"m","prompt":)" + prompt + "}",
                          kLimits);
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(prompts("\"a\"")->prompts, (std::vector<Prompt>{"a"}));
  EXPECT_EQ(prompts(R"(["a","b"])")->prompts, (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(prompts("[1,2]")->prompts, (std::vector<Prompt>{Ids{1, 2}}));
  EXPECT_EQ(prompts("[[1],[2,3]]")->prompts, (std::vector<Prompt>{Ids{1}, Ids{2, 3}}));
  expect_refused(prompts("[]"), "prompt", "invalid_value", "empty");
  expect_refused(prompts("[[]]"), "prompt[0]", "invalid_value", "empty");
  expect_refused(prompts("[1,1000]"), "prompt[1]", "invalid_value", "id");
  expect_refused(prompts("[[1],[1000]]"), "prompt[1][0]", "invalid_value", "id");
  expect_refused(prompts("[\"a\",1]"), "prompt[1]", "invalid_type", "mixed");
  expect_refused(prompts("{}"), "prompt", "invalid_type", "object");
}

TEST(GenerateRequest, RefusesBodiesThatAreNoJsonObject) {
  for (const char* body : {"", "{", "[]", "1", "null", "{\"model\":\"m\"", "\xff\xfe",
                           "{\"model\":\"\xff\"}", "{\"model\":\"m\"} x"})
    EXPECT_FALSE(parse_generate(Endpoint::kChat, body, kLimits)) << body;
  expect_refused(parse_generate(Endpoint::kChat, "{}", kLimits), "messages",
                 "missing_required_parameter", "messages");
  expect_refused(parse_generate(Endpoint::kChat, R"({"model":"m"})", kLimits), "messages",
                 "missing_required_parameter", "messages");
  expect_refused(parse_generate(Endpoint::kCompletions, R"({"model":"m"})", kLimits), "prompt",
                 "missing_required_parameter", "prompt");
}

TEST(GenerateRequest, HasOneFieldOfEachNameAndEndpoint) {
  std::set<std::pair<std::string_view, int>> seen;
  for (const RequestField& field : request_fields()) {
    EXPECT_FALSE(field.help.empty() || field.type.empty()) << field.name;
    for (const int endpoint : {1, 2})
      if (field.endpoints & endpoint) {
        EXPECT_TRUE(seen.emplace(field.name, endpoint).second) << field.name;
      }
  }
}

}  // namespace
}  // namespace weir::api::openai
