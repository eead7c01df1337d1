// tools: whether calls of functions are calls, where the request asks for one, and whether free
// answers beside tools repeat themselves.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "suite/chat.h"
#include "suite/json_value.h"
#include "suite/parts.h"
#include "suite/repetition.h"

namespace weir::suite {

namespace {

constexpr double kTemperature = 0.8;
constexpr int32_t kAnswerTokens = 320, kAtOnce = 16;
// One word of an answer, of all its words; and the fewest words of which that says something.
constexpr double kWordShareMax = 35;
constexpr int32_t kWordsMin = 20;

struct Parameter {
  std::string_view name, type;
};
struct Tool {
  std::string_view name, description;
  std::array<Parameter, 2> parameters;  // All required.
};
constexpr std::array kTools = {
    Tool{"get_weather", "The weather in a city.", {{{"city", "string"}, {"celsius", "boolean"}}}},
    Tool{"add_numbers", "Adds two whole numbers.", {{{"first", "integer"}, {"second", "integer"}}}},
    Tool{"search_notes", "Searches notes.", {{{"query", "string"}, {"limit", "integer"}}}}};
constexpr std::array<std::string_view, 5> kQuestions = {
    "What is the weather in Oslo and in Rome?", "What is 17 plus 25, and 3 plus 4?",
    "Find my notes about the garden.", "Tell me about the history of bridges.",
    "Is it warm in Cairo today?"};

void write_tools(JsonWriter& json) {
  json.key("tools").begin_array();
  for (const Tool& tool : kTools) {
    json.begin_object().field("type", "function").key("function").begin_object();
    json.field("name", tool.name).field("description", tool.description).field("strict", true);
    json.key("parameters").begin_object().field("type", "object");
    json.key("properties").begin_object();
    for (const Parameter& parameter : tool.parameters) {
      json.key(parameter.name).begin_object().field("type", parameter.type);
      if (parameter.type == "string") json.field("maxLength", 24);
      if (parameter.type == "integer") json.field("minimum", 0).field("maximum", 999);
      json.end_object();
    }
    json.end_object().key("required").begin_array();
    for (const Parameter& parameter : tool.parameters) json.value(parameter.name);
    json.end_array().field("additionalProperties", false).end_object().end_object().end_object();
  }
  json.end_array();
}

// How a request asks for calls.
struct Asking {
  const char* name;
  void (*write)(JsonWriter& json);
  bool must_call;
  bool named;  // The first tool, and no other.
  int32_t share;
};
constexpr std::array kAskings = {
    Asking{"named",
           [](JsonWriter& json) {
             json.key("tool_choice").begin_object().field("type", "function").key("function");
             json.begin_object().field("name", kTools[0].name).end_object().end_object();
           },
           true, true, 13},
    Asking{"required",
           [](JsonWriter& json) {
             json.field("tool_choice", "required").field("parallel_tool_calls", false);
           },
           true, false, 13},
    Asking{"parallel",
           [](JsonWriter& json) {
             json.field("tool_choice", "required").field("parallel_tool_calls", true);
           },
           true, false, 12},
    Asking{"auto", [](JsonWriter& json) { json.field("tool_choice", "auto"); }, false, false, 12}};

bool is_of_type(JsonValue value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  return value.is_bool();
}

// What is wrong with a call; empty: nothing.
std::string fault_of(JsonValue call, bool named) {
  std::string_view name, text;
  if (call["function"]["name"].get(name) != simdjson::SUCCESS ||
      call["function"]["arguments"].get(text) != simdjson::SUCCESS)
    return "no name or arguments in " + json_excerpt(call);
  const auto tool = std::ranges::find(kTools, name, &Tool::name);
  if (tool == kTools.end() || (named && tool != kTools.begin()))
    return "a call of " + std::string(name);
  const Result<JsonDoc> arguments = JsonDoc::parse(text);
  JsonObject object;
  if (!arguments || arguments->root().get(object) != simdjson::SUCCESS)
    return "arguments are no object: " + std::string(text.substr(0, 100));
  for (const Parameter& parameter : tool->parameters) {
    JsonValue value;
    if (object[parameter.name].get(value) != simdjson::SUCCESS ||
        !is_of_type(value, parameter.type))
      return std::string(parameter.name) + " is missing or of another type in " +
             std::string(text.substr(0, 100));
  }
  return {};
}

struct Judged {
  std::string fault = {};
  int64_t calls = 0;
  std::string text = {};  // Beside calls.
};

Judged judge(const Answer& answer, const Asking& asking) {
  Judged out;
  if (!answer.error.empty()) return {.fault = answer.error};
  const Result<JsonDoc> doc = JsonDoc::parse(answer.body);
  JsonValue message;
  if (!doc || doc->root()["choices"].at(0)["message"].get(message) != simdjson::SUCCESS)
    return {.fault = "no message in " + answer.body.substr(0, 100)};
  std::string_view text;
  if (message["content"].get(text) == simdjson::SUCCESS) out.text = text;
  const auto finish = doc->root()["choices"].at(0)["finish_reason"];
  const bool cut = value_or(finish, std::string_view()) == "length";
  JsonArray calls;
  if (message["tool_calls"].get(calls) == simdjson::SUCCESS)
    for (const JsonValue call : calls) {
      const std::string fault = fault_of(call, asking.named);
      // An answer may have any number of calls: the last one may be cut where that is too many.
      if (!fault.empty() && cut && out.calls > 0) break;
      ++out.calls;
      if (out.fault.empty()) out.fault = fault;
    }
  if (asking.must_call && out.calls == 0) out.fault = "no call: " + json_excerpt(message);
  return out;
}

Request request(const Run& run, const Asking& asking, int32_t number) {
  return chat(run,
              {.message = std::string(kQuestions[static_cast<size_t>(number) % kQuestions.size()]),
               .max_tokens = kAnswerTokens,
               .temperature = kTemperature,
               .seed = static_cast<uint64_t>(number),
               .more = [&](JsonWriter& json) {
                 write_tools(json);
                 asking.write(json);
               }});
}

Result<void> measure_asking(Run& run, const Endpoint& at, const Asking& asking) {
  // A quick run has a third of them.
  const int32_t count = run.quick() ? (asking.share + 2) / 3 : asking.share;
  run.say(std::string(asking.name) + " calls");
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i) requests.push_back(request(run, asking, i));
  int32_t invalid = 0;
  int64_t calls = 0;
  std::string first;  // What is wrong with the first that is.
  FrequentWord worst;
  for (const Answer& answer : at.ask(requests, kAtOnce)) {
    const Judged judged = judge(answer, asking);
    calls += judged.calls;
    if (!judged.fault.empty() && invalid++ == 0) first = judged.fault;
    const FrequentWord word = most_frequent_word(judged.text, kWordsMin);
    if (word.share > worst.share) worst = word;
  }
  run.add({.name = std::to_string(count) + " requests, " + asking.name + ": invalid",
           .value = static_cast<double>(invalid),
           .limit = at_most(0),
           .note = first});
  if (asking.must_call) return {};
  run.add({.name = std::string(asking.name) + ": calls", .value = static_cast<double>(calls)});
  run.add({.name = std::string(asking.name) + ": most frequent word of an answer",
           .value = 100 * worst.share,
           .unit = "%",
           .limit = at_most(kWordShareMax)});
  return {};
}

}  // namespace

Result<void> measure_tools(Run& run) {
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  WEIR_ASSIGN(const bool chats, needs_chat(run, *at, "calls of functions"));
  if (!chats) return {};
  for (const Asking& asking : kAskings) WEIR_TRY(measure_asking(run, *at, asking));
  return {};
}

}  // namespace weir::suite
