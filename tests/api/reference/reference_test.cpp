// docs/api.md and /openapi.json say what the code does: the page is compared with the tables, and a
// server is asked what becomes of every field.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "api/fake_desk.h"
#include "api/test_api.h"

namespace weir::api::reference {
namespace {

TEST(Reference, ThePageIsUpToDate) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/docs/api.md";
  const std::string page = api_page(Api::endpoints());
  if (::getenv("WEIR_WRITE_PAGES")) std::ofstream(path) << page;
  std::ifstream file(path);
  const std::string written((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(written == page) << "docs/api.md is stale: WEIR_WRITE_PAGES=1 api_test writes it";
}

TEST(Reference, NamesNothingTwice) {
  std::set<std::string> endpoints;
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    const std::string name = std::string(endpoint.method) + " " + std::string(endpoint.path);
    EXPECT_TRUE(endpoints.insert(name).second) << name;
    if (!endpoint.fields) continue;
    std::set<std::string_view> fields;
    for (const FieldDoc& field : endpoint.fields()) {
      EXPECT_TRUE(fields.insert(field.name).second) << name << " " << field.name;
      EXPECT_TRUE(field.help.ends_with('.')) << name << " " << field.name << ": " << field.help;
    }
  }
}

TEST(Reference, OpenApiListsEveryEndpointAndField) {
  TestApi server;
  const auto answer = server.get("/openapi.json");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Type"), "application/json");
  const auto doc = JsonDoc::parse(answer.body);
  ASSERT_TRUE(doc) << doc.error().message;
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    std::string method(endpoint.method), path(endpoint.path), pointer;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    for (const char c : path) pointer += c == '/' ? std::string("~1") : std::string(1, c);
    pointer = "/paths/" + pointer + "/" + method;
    ASSERT_EQ(doc->root().at_pointer(pointer + "/summary").error(), simdjson::SUCCESS) << pointer;
    if (!endpoint.fields) continue;
    std::string_view component;
    const std::string type = endpoint.form ? "multipart~1form-data" : "application~1json";
    const auto reference =
        doc->root().at_pointer(pointer + "/requestBody/content/" + type + "/schema/$ref");
    ASSERT_EQ(reference.get(component), simdjson::SUCCESS) << pointer;
    for (const FieldDoc& field : endpoint.fields()) {
      const std::string property = std::string(component.substr(1)) + "/properties/" +
                                   std::string(field.name) + "/description";
      EXPECT_EQ(doc->root().at_pointer(property).error() == simdjson::SUCCESS,
                field.treatment != Treatment::kRefused)
          << property;
    }
  }
}

// Bodies that each endpoint answers: between them, each field matters in one. A field is put in
// front, where the first of duplicates wins.
const std::map<std::string, std::vector<std::string>> kBodies = {
    {"/v1/chat/completions", {R"("messages":[{"role":"user","content":"x"}],"max_tokens":1)"}},
    {"/v1/completions", {R"("prompt":"A","max_tokens":1)"}},
    {"/completion", {R"("prompt":"A","n_predict":1)"}},
    {"/completions", {R"("prompt":"A","n_predict":1)"}},
    {"/apply-template", {R"("messages":[{"role":"user","content":"x"}])"}},
    {"/infill", {R"("input_prefix":"A","input_suffix":"B","n_predict":1)"}},
    {"/v1/responses", {R"("input":"x","max_output_tokens":1)"}},
    {"/v1/responses/input_tokens", {R"("input":"x","max_output_tokens":1)"}},
    {"/v1/messages", {R"("max_tokens":1,"messages":[{"role":"user","content":"x"}])"}},
    {"/v1/messages/count_tokens", {R"("messages":[{"role":"user","content":"x"}])"}},
    {"/v1/embeddings", {R"("input":"A")", R"("messages":[{"role":"user","content":"x"}])"}},
    {"/v1/rerank", {R"("query":"q","documents":["A"])", R"("query":"q","texts":["A"])"}},
    {"/v2/rerank", {R"("query":"q","documents":["A"])"}},
    {"/v1/score", {R"("text_1":"q","text_2":"A")", R"("queries":"q","documents":"A")"}},
    {"/v1/load_lora_adapter", {R"("lora_name":"a","lora_path":"b")"}},
    {"/v1/unload_lora_adapter", {R"("lora_name":"a")"}},
    {"/tokenize",
     {R"("content":"A")", R"("prompt":"A")", R"("messages":[{"role":"user","content":"x"}])"}},
    {"/detokenize", {R"("tokens":[65])"}},
    {"/api/chat", {R"("messages":[{"role":"user","content":"x"}])"}},
    {"/api/generate", {R"("prompt":"A")"}},
    {"/api/embed", {R"("input":"A")"}},
    {"/api/embeddings", {R"("prompt":"A")"}},
    {"/api/show", {R"("model":"m")", R"("name":"m")"}},
    {"/api/pull", {R"("model":"org/name")", R"("name":"org/name")"}},
    {"/api/delete", {R"("model":"org/name")", R"("name":"org/name")"}},
};

bool takes(std::string_view types, std::string_view type) {
  return types.find(type) != std::string_view::npos;
}

// A value of a type that the field does not take.
std::string wrong_value(std::string_view types) {
  if (!takes(types, "number") && !takes(types, "integer")) return "5.5";
  return takes(types, "object") ? R"("?")" : R"({"?":1})";
}

// A value that asks for something.
std::string right_value(std::string_view types) {
  if (takes(types, "boolean")) return "true";
  if (takes(types, "string")) return R"("x")";
  if (takes(types, "integer") || takes(types, "number")) return "1";
  return takes(types, "array") ? R"([{"a":1}])" : R"({"a":1})";
}

// The field that an error is about. Anthropic's and Ollama's errors say it in their message only.
std::string param_of(const std::string& body) {
  const bool in_message =
      body.starts_with(R"({"type":"error")") || body.starts_with(R"({"error":")");
  const std::string key = in_message ? "'" : R"("param":")";
  const size_t at = body.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return body.substr(begin, body.find(in_message ? '\'' : '"', begin) - begin);
}

// A body that lacks the member is none that the endpoint answers: all are but bounds of length, and
// those of Ollama's that then ask for nothing but the model.
bool is_needed(std::string_view path, const std::string& body, const FieldDoc& field) {
  if (path == "/api/chat" || path == "/api/generate") return false;
  if (field.required) return true;
  if (field.name.starts_with("max_") || field.name == "n_predict") return false;
  const auto doc = JsonDoc::parse("{" + body + "}");
  return json_get(doc->root().get_object().value_unsafe(), field.name).has_value();
}

RawClient::Response send(const TestApi& server, const EndpointDoc& endpoint,
                         const std::string& body) {
  RawClient client(server.port());
  std::string request =
      net::post(std::string(endpoint.path), body, "Content-Type: application/json\r\n");
  client.send(request.replace(0, request.find(' '), endpoint.method));
  return client.read_response();
}

void check_field(const TestApi& server, const EndpointDoc& endpoint, const FieldDoc& field) {
  const std::string path(endpoint.path);
  const std::string key = "\"" + std::string(field.name) + "\":";
  const bool refused = field.treatment == Treatment::kRefused;
  bool named = false;  // A 400 in one of the bodies that names the field.
  std::string seen;
  for (const std::string& body : kBodies.at(path)) {
    const int usual = send(server, endpoint, "{" + body + "}").status;
    const auto with = [&](const std::string& value) {
      return send(server, endpoint, "{" + key + value + "," + body + "}");
    };
    const auto answer = with(refused ? right_value(field.type) : wrong_value(field.type));
    named = named || (answer.status == 400 && param_of(answer.body).starts_with(field.name));
    seen += answer.body + "\n";
    if (field.treatment == Treatment::kIgnored) {
      EXPECT_EQ(answer.status, usual) << answer.body;
    }
    const bool needed = is_needed(path, body, field);
    EXPECT_EQ(with("null").status, needed ? 400 : usual) << "null counts as absent";
  }
  EXPECT_EQ(named, field.treatment != Treatment::kIgnored) << seen;
}

TEST(Reference, AServerDoesWithEachFieldWhatThePageSays) {
  FakeDesk desk;
  TestOptions options{.infills = true};
  options.config.rerank = {.yes = 'y', .no = 'n'};
  options.config.hub = &desk;
  TestApi server(options);
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    // Those of management: tests/api/models/model_orders_test.cpp.
    // Forms: tests/api/transcription/form_request_test.cpp.
    if (!endpoint.fields || endpoint.access == Access::kAdmin || endpoint.form) continue;
    const std::string path(endpoint.path);
    ASSERT_TRUE(kBodies.contains(path)) << path << " needs a row in kBodies";
    for (const FieldDoc& field : endpoint.fields()) {
      SCOPED_TRACE(path + " " + std::string(field.name));
      check_field(server, endpoint, field);
    }
  }
}

}  // namespace
}  // namespace weir::api::reference
