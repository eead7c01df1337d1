// The reference cannot lie: its examples are sent to a server, and what comes back, whole, in
// events or as an error, is held against the schemas of /openapi.json.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "api/fake_desk.h"
#include "api/reference/reference.h"
#include "api/serving/adapters.h"
#include "api/test_api.h"
#include "grammar/json_validator.h"

namespace weir::api::reference {
namespace {

using grammar::JsonValidator;
using reference::Example;
using reference::Operation;

// Copies a schema; objects that do not say whether they may have other members may not.
void write_closed(JsonWriter& json, JsonValue value) {
  JsonArray array;
  JsonObject object;
  if (value.get(array) == simdjson::SUCCESS) {
    json.begin_array();
    for (const JsonValue element : array) write_closed(json, element);
    json.end_array();
  } else if (value.get(object) == simdjson::SUCCESS) {
    json.begin_object();
    for (const auto [key, member] : object) write_closed(json.key(key), member);
    if (json_get(object, "properties") && json_get(object, "type") &&
        object.at_key("additionalProperties").error() != simdjson::SUCCESS)
      json.field("additionalProperties", false);
    json.end_object();
  } else {
    json.value(value);
  }
}

// components/schemas of a server's document.
class Components {
 public:
  explicit Components(const TestApi& server) : openapi_(server.get("/openapi.json").body) {
    const auto doc = JsonDoc::parse(openapi_);
    CHECK(doc.has_value());
    JsonWriter json(closed_);
    write_closed(json, doc->root().at_pointer("/components").value());
    const JsonObject schemas = doc->root().at_pointer("/components/schemas").value();
    for (const auto [name, schema] : schemas) names_.emplace(name);
  }

  const std::string& openapi() const { return openapi_; }
  const std::set<std::string>& names() const { return names_; }

  void expect_fits(std::string_view component, const std::string& text) {
    ASSERT_TRUE(names_.contains(std::string(component))) << "no schema named " << component;
    auto& root = roots_[std::string(component)];
    if (!root) {
      auto doc = JsonDoc::parse(R"({"$ref":"#/components/schemas/)" + std::string(component) +
                                R"(","components":)" + closed_ + "}");
      ASSERT_TRUE(doc) << doc.error().message;
      root = std::make_unique<JsonDoc>(std::move(*doc));
    }
    const auto value = JsonDoc::parse(text);
    ASSERT_TRUE(value) << "not JSON: " << text;
    EXPECT_TRUE(JsonValidator(root->root()).valid(value->root()))
        << "not as src/api/reference describes " << component << ": " << text;
  }

 private:
  const std::string openapi_;
  std::string closed_;
  std::set<std::string> names_;
  std::map<std::string, std::unique_ptr<JsonDoc>> roots_;
};

std::string_view error_component(std::string_view path) {
  if (path.starts_with("/api/")) return "OllamaError";
  return path.starts_with("/v1/messages") ? "MessageError" : "Error";
}

// Of a stream of events, or of lines.
std::vector<std::string> events_of(const std::string& body) {
  constexpr std::string_view kData = "data: ";
  std::vector<std::string> events;
  if (body.starts_with('{'))
    for (size_t at = 0, end; (end = body.find('\n', at)) != std::string::npos; at = end + 1)
      events.push_back(body.substr(at, end - at));
  for (size_t at = 0; (at = body.find(kData, at)) != std::string::npos;) {
    at += kData.size();
    const std::string data = body.substr(at, body.find('\n', at) - at);
    if (data != "[DONE]") events.push_back(data);
  }
  return events;
}

// Of no weights: nothing is computed with them here.
Adapters& some_adapters() {
  static Adapters adapters({.count_max = 4, .bytes_max = 1, .in_step_max = 2},
                           [](const std::string&, int64_t) { return AdapterWeights{}; });
  return adapters;
}

// A server that can do everything that examples ask.
TestOptions able() {
  static FakeDesk desk;
  TestOptions options{.infills = true};
  options.config.adapters = &some_adapters();
  options.config.model_id = "weir-tiny-moe";
  options.config.parallel = 2;
  options.config.hub = &desk;
  options.config.rerank = {.yes = 'y', .no = 'n'};
  options.config.search_models = [](const ModelSearch&, const auto& done) {
    done(R"({"models":[{"id":"org/name","downloads":1,"likes":2,"gated":false,"private":false}],)"
         R"("next":null})");
  };
  return options;
}

std::string text_of(JsonValue value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

std::string id_in(const std::string& body) {
  const auto doc = JsonDoc::parse(body);
  CHECK(doc.has_value());
  return std::string(doc->root()["id"].get_string().value());
}

// The path with something in it that the server has.
std::string target_of(const TestApi& server, const Example& example) {
  std::string target(example.path);
  const size_t open = target.find('{');
  if (open == std::string::npos) return target.append(example.id);
  std::string id(example.id);
  if (target.starts_with("/v1/responses/"))
    id = id_in(server.post("/v1/responses", R"({"input":"Hi","max_output_tokens":2})").body);
  return target.replace(open, target.find('}') - open + 1, id);
}

RawClient::Response send(const TestApi& server, const Operation& operation,
                         const std::string& target, const std::string& body) {
  RawClient client(server.port());
  std::string head = std::string(operation.method) + " " + target + " HTTP/1.1\r\nHost: x\r\n";
  if (operation.method == "POST" || !body.empty())
    head +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(head + "\r\n" + body);
  return client.read_response();
}

// Sends a request, and holds it and its answer against the schemas.
void expect_documented(const TestApi& server, Components& components, const Operation& operation,
                       const std::string& target, const std::string& body, bool stream) {
  SCOPED_TRACE(std::string(operation.method) + " " + target + " " + body);
  if (!operation.request.empty()) components.expect_fits(operation.request, body);
  const auto answer = send(server, operation, target, body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("x-weir-ignored"), "");
  const std::string type = answer.header("Content-Type");
  if (stream) {
    EXPECT_EQ(type, reference::streams_lines(operation) ? "application/x-ndjson"
                                                        : "text/event-stream; charset=utf-8");
    const std::vector<std::string> events = events_of(answer.body);
    ASSERT_FALSE(events.empty());
    for (const std::string& event : events) components.expect_fits(operation.event, event);
    const bool is_openai = events.front().find(R"("object":)") != std::string::npos &&
                           !answer.body.starts_with("event: ");
    EXPECT_EQ(answer.body.ends_with("data: [DONE]\n\n"), is_openai) << "as the page shows it";
  } else if (operation.answer.empty()) {
    EXPECT_TRUE(type.starts_with("text/plain")) << type;
  } else {
    EXPECT_EQ(type, "application/json");
    components.expect_fits(operation.answer, answer.body);
  }
}

TEST(Reference, EveryEndpointHasAnOperationAndAnExample) {
  TestApi server;
  const Components components(server);
  std::set<std::string_view> ids;
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    SCOPED_TRACE(std::string(endpoint.method) + " " + std::string(endpoint.path));
    const Operation* operation = reference::find_operation(endpoint.method, endpoint.path);
    ASSERT_TRUE(operation) << "needs a row in src/api/reference/operations.cpp";
    EXPECT_TRUE(ids.insert(operation->id).second) << operation->id;
    EXPECT_EQ(operation->request.empty(), endpoint.fields == nullptr);
    for (const std::string_view name : {operation->answer, operation->event})
      EXPECT_TRUE(name.empty() || components.names().contains(std::string(name)))
          << name << " needs a row in one of src/api/reference/*_schemas.cpp";
    size_t whole = 0, streamed = 0;
    for (const Example* example : reference::examples_of(*operation))
      ++(reference::asks_for_stream(*example) ? streamed : whole);
    EXPECT_NE(whole > 0, operation->refuses)
        << "needs a row in one of src/api/reference/*_examples.cpp";
    EXPECT_EQ(streamed > 0, !operation->event.empty()) << "examples of streams, and their events";
  }
  EXPECT_EQ(reference::operations().size(), Api::endpoints().size()) << "an operation too many";
}

TEST(Reference, SchemasPointToSchemasAndEachIsUsed) {
  TestApi server;
  const Components components(server);
  constexpr std::string_view kPointer = R"("$ref":"#/components/schemas/)";
  std::set<std::string> used;
  const std::string& text = components.openapi();
  for (size_t at = 0; (at = text.find(kPointer, at)) != std::string::npos;) {
    at += kPointer.size();
    used.insert(text.substr(at, text.find('"', at) - at));
  }
  EXPECT_EQ(used, components.names());
}

TEST(Reference, ArraysAndObjectsSayWhatIsInThem) {
  std::set<const reference::FieldSchema*> used;
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    if (!endpoint.fields) continue;
    for (const FieldDoc& field : endpoint.fields()) {
      const auto* schema = reference::find_field_schema(endpoint.path, field.name);
      used.insert(schema);
      if (field.treatment != Treatment::kHonoured) continue;
      if (field.type.find("array") == field.type.npos &&
          field.type.find("object") == field.type.npos)
        continue;
      EXPECT_TRUE(schema) << endpoint.path << " " << field.name
                          << " needs a row in src/api/reference/field_schemas.cpp";
    }
  }
  for (const reference::FieldSchema& schema : reference::field_schemas())
    EXPECT_TRUE(used.contains(&schema)) << "no endpoint has " << schema.field;
}

TEST(Reference, ExamplesFitTheirSchemas) {
  TestApi server;
  Components components(server);
  for (const Operation& operation : reference::operations()) {
    for (const Example* example : reference::examples_of(operation)) {
      SCOPED_TRACE(std::string(operation.id) + ": " + std::string(example->title));
      if (!example->request.empty())
        components.expect_fits(operation.request, std::string(example->request));
      if (!reference::asks_for_stream(*example)) {
        if (!operation.answer.empty())
          components.expect_fits(operation.answer, std::string(example->answer));
        continue;
      }
      const auto doc = JsonDoc::parse(example->answer);
      JsonArray events;
      ASSERT_TRUE(doc && doc->root().get(events) == simdjson::SUCCESS);
      for (const JsonValue event : events) components.expect_fits(operation.event, text_of(event));
    }
  }
}

// What a server of one model refuses, or never ends; tests/e2e/several_models_test.py asks for it.
bool is_of_several_models(const Operation& operation) {
  return operation.path == "/models/unload" || operation.path == "/models/sse";
}

// What a speech model answers; tests/e2e/transcriptions_test.py asks one.
bool is_of_recordings(const Operation& operation) {
  return operation.path.starts_with("/v1/audio/");
}

TEST(Reference, AServerAnswersTheExamplesAsTheSchemasSay) {
  TestApi server(able());
  Components components(server);
  for (const Operation& operation : reference::operations()) {
    if (is_of_several_models(operation) || is_of_recordings(operation)) continue;
    for (const Example* example : reference::examples_of(operation))
      expect_documented(server, components, operation, target_of(server, *example),
                        std::string(example->request), reference::asks_for_stream(*example));
  }
}

std::string state_of(const TestApi& server) {
  std::string state;
  for (const char* page : {"/props", "/v1/models", "/version", "/slots"})
    state += server.get(page).body + "\n";
  return state;
}

TEST(Reference, OnlyEndpointsOfScopeAdminChangeTheServer) {
  TestApi server(able());
  const std::string before = state_of(server);
  for (const Operation& operation : reference::operations()) {
    const std::vector<EndpointDoc> endpoints = Api::endpoints();
    const auto endpoint = std::ranges::find_if(endpoints, [&](const EndpointDoc& each) {
      return each.method == operation.method && each.path == operation.path;
    });
    ASSERT_NE(endpoint, endpoints.end()) << operation.path;
    if (endpoint->access == Access::kAdmin || is_of_several_models(operation)) continue;
    for (const Example* example : reference::examples_of(operation))
      send(server, operation, target_of(server, *example), std::string(example->request));
    EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
    EXPECT_EQ(state_of(server), before) << operation.method << " " << operation.path;
  }
}

// What the examples leave out. In all of them streams are asked for last.
constexpr std::pair<const char*, const char*> kMore[] = {
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"n":2,)"
     R"("logprobs":true,"top_logprobs":2,"max_tokens":3,"stop":["!"])"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":)"
     R"({"name":"ping","parameters":{"type":"object","properties":{}}}}],)"
     R"("tool_choice":{"type":"function","function":{"name":"ping"}})"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"functions":[{"name":"ping","parameters":)"
     R"({"type":"object","properties":{}}}],"function_call":{"name":"ping"})"},
    {"/v1/completions",
     R"({"prompt":["A","B"],"max_tokens":3,"echo":true,"logprobs":2,"logit_bias":{"66":1})"},
    {"/v1/completions", R"({"prompt":[[65,66],[67]],"max_tokens":3,"stop_token_ids":[70])"},
    {"/infill", R"({"input_prefix":"A","input_suffix":"B","n_predict":3,"stop":"M",)"
                R"("input_extra":[{"text":"x","filename":"y"}])"},
    {"/v1/responses",
     R"({"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c",)"
     R"("name":"ping","arguments":"{}"},{"type":"function_call_output","call_id":"c",)"
     R"("output":"pong"}],"top_logprobs":2,"max_output_tokens":3,"metadata":{"a":"b"},)"
     R"("reasoning":{"effort":"low"},"user":"u")"},
    {"/v1/responses", R"({"input":"Hi","tools":[{"type":"function","name":"ping","parameters":)"
                      R"({"type":"object","properties":{}},"strict":false}],)"
                      R"("tool_choice":{"type":"function","name":"ping"})"},
    {"/v1/responses",
     R"({"input":[{"role":"user","content":"Hi"},{"type":"custom_tool_call","call_id":"c",)"
     R"("name":"run","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"y"}],)"
     R"("tools":[{"type":"custom","name":"run","format":{"type":"grammar","syntax":"regex",)"
     R"("definition":"[ab]"}}],"tool_choice":{"type":"custom","name":"run"})"},
    {"/v1/responses",
     R"({"input":[{"type":"additional_tools","role":"developer","tools":[]},)"
     R"({"role":"user","content":"Hi"}],"tools":[{"type":"namespace","name":"sums","tools":[)"
     R"({"type":"function","name":"add","parameters":{"type":"object","properties":{}}}]}],)"
     R"("tool_choice":{"type":"function","namespace":"sums","name":"add"})"},
    {"/v1/responses",
     R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"n","schema":{"const":1}}})"},
    {"/v1/messages",
     R"({"max_tokens":200,"system":[{"type":"text","text":"Be brief."}],"messages":[)"
     R"({"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":[)"
     R"({"type":"tool_use","id":"t","name":"ping","input":{}}]},{"role":"user","content":[)"
     R"({"type":"tool_result","tool_use_id":"t","content":"pong"}]}],"tools":[{"name":"ping",)"
     R"("input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any"})"},
    {"/v1/messages",
     R"({"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"stop_sequences":["y"])"},
    {"/v1/embeddings", R"({"input":[[65],[66]],"encoding_format":"base64")"},
    {"/v1/embeddings", R"({"messages":[{"role":"user","content":"Hi"}])"},
    {"/completion", R"({"prompt":["A",[66,"C"]],"n_predict":3,"n_probs":2,"logit_bias":)"
                    R"([[66,1],["C",false]])"},
    {"/completion", R"({"prompt":{"prompt_string":"A"},"n_predict":2,"return_tokens":true)"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"return_token_ids":true,)"
     R"("bad_words":["e"],"include_reasoning":false,"logprobs":true,)"
     R"("return_tokens_as_token_ids":true)"},
    {"/v1/completions",
     R"({"prompt":"AB","max_tokens":2,"return_token_ids":true,"allowed_token_ids":[66,67])"},
    {"/v1/rerank", R"({"query":"q","texts":["A"],"return_text":true,"truncate":true)"},
    {"/v1/score", R"({"text_1":["A","B"],"text_2":["C","D"])"},
    {"/tokenize", R"({"prompt":"A","return_token_strs":true)"},
    {"/api/chat", R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":)"
                  R"([{"function":{"name":"ping","arguments":{}}}]},{"role":"tool","content":"p",)"
                  R"("tool_name":"ping"}],"tools":[{"type":"function","function":{"name":"ping",)"
                  R"("parameters":{"type":"object","properties":{}}}}],"logprobs":true,)"
                  R"("top_logprobs":1,"keep_alive":"5m","options":{"num_predict":3})"},
    {"/api/generate", R"({"prompt":"A","suffix":"B","options":{"num_predict":3},"keep_alive":0,)"
                      R"("format":"json","logprobs":true)"},
    {"/api/embed", R"({"input":"A","truncate":false,"options":{"num_ctx":8})"},
};

TEST(Reference, AServerAnswersOtherRequestsAsTheSchemasSay) {
  TestApi server(able());
  Components components(server);
  for (const auto& [path, body] : kMore) {
    const Operation* operation = reference::find_operation("POST", path);
    ASSERT_TRUE(operation) << path;
    const bool streams = !operation->event.empty();
    const bool unasked = streams && reference::streams_lines(*operation);
    expect_documented(server, components, *operation, path,
                      std::string(body) + (unasked ? R"(,"stream":false})" : "}"), false);
    if (streams)
      expect_documented(server, components, *operation, path,
                        std::string(body) + R"(,"stream":true})", true);
  }
}

// What is asked of a whole answer, or of events, alone.
TEST(Reference, PromptsAndUsageAreShownAsTheSchemasSay) {
  TestApi server(able());
  Components components(server);
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", R"({"prompt":"AB","max_tokens":1,"prompt_logprobs":2})"},
        {"/v1/chat/completions",
         R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,"prompt_logprobs":2})"}})
    expect_documented(server, components, *reference::find_operation("POST", path), path, body,
                      false);
  const char* const path = "/v1/chat/completions";
  expect_documented(server, components, *reference::find_operation("POST", path), path,
                    R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"stream":true,)"
                    R"("stream_options":{"include_usage":true,"continuous_usage_stats":true}})",
                    true);
}

TEST(Reference, SlotsAreShownAsTheSchemaSays) {
  TestOptions options = able();
  options.step_us = 1000;
  TestApi server(options);
  Components components(server);
  RawClient running(server.port());
  running.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  components.expect_fits("SlotList", server.get("/slots").body);
  running.close();
}

TEST(Reference, ErrorsAreAsTheSchemasSay) {
  TestApi server(able());
  Components components(server);
  for (const Operation& operation : reference::operations()) {
    std::string target(operation.path);
    if (const size_t open = target.find('{'); open != std::string::npos)
      target.replace(open, target.find('}') - open + 1, "nothing");
    else if (operation.method != "POST")
      continue;
    SCOPED_TRACE(target);
    const auto answer = send(server, operation, target, operation.method == "POST" ? "{" : "");
    EXPECT_GE(answer.status, 400);
    components.expect_fits(error_component(operation.path), answer.body);
  }
}

TEST(Reference, ErrorsInMidStreamAreAsTheSchemasSay) {
  TestOptions options = able();
  options.config.request_timeout_s = 0.2;
  options.step_us = 1000;
  TestApi server(options);
  Components components(server);
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/completions", R"({"prompt":"A","max_tokens":4000,"stream":true})"},
      {"/v1/responses", R"({"input":"A","ignore_eos":true,"stream":true,"logit_bias":{"65":99}})"},
      {"/v1/messages",
       R"({"messages":[{"role":"user","content":"A"},{"role":"assistant","content":"A"}],)"
       R"("max_tokens":4000,"stream":true})"},
      {"/api/generate", R"({"prompt":"A","raw":true,"options":{"num_predict":4000}})"}};
  for (const auto& [path, body] : cases) {
    SCOPED_TRACE(path);
    const auto answer = server.post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Operation* operation = reference::find_operation("POST", path);
    const bool has_own = std::string_view(path).starts_with("/v1/responses") ||
                         std::string_view(path).starts_with("/v1/messages");
    bool failed = false;
    for (const std::string& event : events_of(answer.body)) {
      const bool is_error = event.find(R"("error":)") != std::string::npos;
      failed = failed || is_error;
      components.expect_fits(is_error && !has_own ? error_component(path) : operation->event,
                             event);
    }
    EXPECT_TRUE(failed) << answer.body.substr(answer.body.size() -
                                              std::min<size_t>(answer.body.size(), 600));
  }
}

}  // namespace
}  // namespace weir::api::reference
