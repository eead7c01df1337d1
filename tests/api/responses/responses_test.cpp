// /v1/responses over a socket and through the real engine: whole answers, events, stored responses.
#include <gtest/gtest.h>

#include "api/responses/shape.h"
#include "api/test_api.h"

namespace weir::api::responses {
namespace {

std::string member(const std::string& body, const std::string& pointer) {
  const auto doc = JsonDoc::parse(body);
  if (!doc) return "not JSON: " + body;
  const auto found = doc->root().at_pointer(pointer);
  if (found.error() != simdjson::SUCCESS) return "absent";
  std::string_view text;
  if (found.value_unsafe().get(text) == simdjson::SUCCESS) return std::string(text);
  std::string json;
  JsonWriter(json).value(found.value_unsafe());
  return json;
}

struct Event {
  std::string name, data;
};

std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> events;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    const size_t line = event.find('\n');
    EXPECT_TRUE(event.starts_with("event: ")) << event;
    EXPECT_EQ(event.substr(line + 1, 6), "data: ") << event;
    events.push_back({event.substr(7, line - 7), event.substr(line + 7)});
    EXPECT_EQ(member(events.back().data, "/type"), events.back().name);
    EXPECT_EQ(member(events.back().data, "/sequence_number"), std::to_string(events.size() - 1));
    at = end + 2;
  }
  return events;
}

std::string names_of(const std::vector<Event>& events) {
  std::string names;
  for (const Event& event : events) names += event.name.substr(event.name.find('.') + 1) + " ";
  return names;
}

constexpr const char* kHi = R"({"model":"m","input":"Hi","temperature":0)";

TEST(Responses, AnswersWhole) {
  TestApi server;
  const auto answer = server.post("/v1/responses", std::string(kHi) + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string& body = answer.body;
  EXPECT_TRUE(member(body, "/id").starts_with("resp_"));
  EXPECT_EQ(member(body, "/object"), "response");
  EXPECT_EQ(member(body, "/status"), "completed");
  EXPECT_EQ(member(body, "/error"), "null");
  EXPECT_EQ(member(body, "/model"), "m");
  EXPECT_EQ(member(body, "/tools"), "[]");
  EXPECT_EQ(member(body, "/tool_choice"), "auto");
  EXPECT_EQ(member(body, "/parallel_tool_calls"), "true");
  EXPECT_EQ(member(body, "/store"), "true");
  EXPECT_EQ(member(body, "/output/0/type"), "message");
  EXPECT_EQ(member(body, "/output/0/status"), "completed");
  EXPECT_EQ(member(body, "/output/0/content"),
            R"([{"type":"output_text","annotations":[],"logprobs":[],"text":"hey )"
            "\xc3\xa9"
            R"(!"}])");
  EXPECT_EQ(member(body, "/output/1"), "absent");
  EXPECT_EQ(member(body, "/usage"),
            R"({"input_tokens":19,"input_tokens_details":{"cached_tokens":0},"output_tokens":7,)"
            R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":26})");
}

TEST(Responses, IsIncompleteAtItsLimit) {
  TestApi server;
  const auto answer = server.post(
      "/v1/responses", R"({"model":"m","input":"Hi","max_output_tokens":3,"metadata":{"a":"b"}})");
  EXPECT_EQ(member(answer.body, "/status"), "incomplete");
  EXPECT_EQ(member(answer.body, "/incomplete_details/reason"), "max_output_tokens");
  EXPECT_EQ(member(answer.body, "/output/0/status"), "incomplete");
  EXPECT_EQ(member(answer.body, "/max_output_tokens"), "3");
  EXPECT_EQ(member(answer.body, "/metadata/a"), "b");
}

TEST(Responses, StreamsEventsInOrder) {
  TestApi server;
  const auto answer = server.post("/v1/responses", std::string(kHi) + R"(,"stream":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::vector<Event> events = events_of(answer.body);
  EXPECT_EQ(names_of(events),
            "created in_progress output_item.added content_part.added output_text.delta "
            "output_text.delta output_text.delta output_text.delta output_text.delta "
            "output_text.delta output_text.done content_part.done output_item.done completed ");
  const std::string id = member(events[2].data, "/item/id");
  std::string text;
  for (const Event& event : events) {
    if (event.name.find("part") != std::string::npos ||
        event.name.find("text") != std::string::npos) {
      EXPECT_EQ(member(event.data, "/item_id"), id);
      EXPECT_EQ(member(event.data, "/output_index"), "0");
      EXPECT_EQ(member(event.data, "/content_index"), "0");
    }
    if (event.name == "response.output_text.delta") text += member(event.data, "/delta");
  }
  EXPECT_EQ(text, "hey \xc3\xa9!");
  EXPECT_EQ(member(events[10].data, "/text"), text);
  EXPECT_EQ(member(events.back().data, "/response/output/0"), member(events[12].data, "/item"));
  EXPECT_EQ(member(events.back().data, "/response/usage/output_tokens"), "7");
  EXPECT_EQ(member(events[0].data, "/response/status"), "in_progress");
  EXPECT_EQ(member(events[0].data, "/response/output"), "[]");
}

// The last events repeat the text four times, which is more than a connection may queue.
TEST(Responses, LongOnesAreStreamedToTheirEnd) {
  TestOptions options{.config = {.stream_pause_bytes = 4'096},
                      .context = 32'768,
                      .chat_template = "{{ messages[0].content }}"};
  options.limits.stream_queue_bytes_max = 16'384;
  TestApi server(options);
  RawClient slow(server.port(), "127.0.0.1", 4096);
  slow.send(net::post("/v1/responses", R"({"input":"A","temperature":0,"stream":true,)"
                                       R"("max_output_tokens":20000})"));
  // It reads when all is made.
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  std::this_thread::sleep_for(50ms);
  const auto streamed = slow.read_response();
  ASSERT_EQ(streamed.status, 200);
  const std::vector<Event> events = events_of(streamed.body);
  ASSERT_EQ(events.back().name, "response.incomplete");
  EXPECT_EQ(member(events.back().data, "/response/output/0/content/0/text").size(), 20'000u);
  // The stream has ended in order, and its connection serves on.
  slow.send(net::post("/v1/responses", std::string(kHi) + "}"));
  EXPECT_EQ(slow.read_response().status, 200);
}

TEST(Responses, LogprobsStandInDeltasAndInTheItem) {
  TestApi server;
  const auto answer =
      server.post("/v1/responses",
                  std::string(kHi) + R"(,"stream":true,"top_logprobs":2,"max_output_tokens":2})");
  const std::vector<Event> events = events_of(answer.body);
  ASSERT_EQ(events.size(), 10u) << answer.body;
  EXPECT_EQ(member(events[4].data, "/logprobs/0/token"), "h");
  EXPECT_NE(member(events[4].data, "/logprobs/0/top_logprobs/1/token"), "absent");
  EXPECT_EQ(member(events[6].data, "/logprobs/1/token"), "e");
  EXPECT_EQ(member(events.back().data, "/response/output/0/content/0/logprobs/1/token"), "e");
}

TEST(Responses, StoredOnesAreReadContinuedAndDeleted) {
  TestApi server;
  const auto first = server.post("/v1/responses", std::string(kHi) + "}");
  const std::string id = member(first.body, "/id");
  EXPECT_EQ(server.get("/v1/responses/" + id).body, first.body);

  const auto items = server.get("/v1/responses/" + id + "/input_items");
  EXPECT_EQ(items.status, 200);
  EXPECT_EQ(member(items.body, "/data/0/content/0/text"), "Hi");
  EXPECT_EQ(member(items.body, "/first_id"), member(items.body, "/data/0/id"));
  EXPECT_EQ(member(items.body, "/has_more"), "false");

  // "[user]Hi[assistant]hey é![user]Hi[assistant]", in bytes.
  const auto second =
      server.post("/v1/responses", std::string(kHi) + R"(,"previous_response_id":")" + id + "\"}");
  EXPECT_EQ(member(second.body, "/usage/input_tokens"), "45") << second.body;
  EXPECT_EQ(member(second.body, "/previous_response_id"), id);

  RawClient client(server.port());
  client.send("DELETE /v1/responses/" + id + " HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto deleted = client.read_response();
  EXPECT_EQ(deleted.body, R"({"id":")" + id + R"(","object":"response","deleted":true})");
  EXPECT_EQ(server.get("/v1/responses/" + id).status, 404);
  EXPECT_EQ(server.get("/v1/responses/" + id + "/input_items").status, 404);
  const auto lost =
      server.post("/v1/responses", std::string(kHi) + R"(,"previous_response_id":")" + id + "\"}");
  EXPECT_EQ(lost.status, 400);
  EXPECT_EQ(error_code(lost.body), "previous_response_not_found");
  // The second has all it needs.
  const auto third =
      server.post("/v1/responses", std::string(kHi) + R"(,"previous_response_id":")" +
                                       member(second.body, "/id") + "\"}");
  EXPECT_EQ(third.status, 200) << third.body;
}

TEST(Responses, ListsInputItemsInPages) {
  TestApi server;
  const auto answer =
      server.post("/v1/responses",
                  R"({"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
          {"role":"user","content":"c","id":"msg_mine"}],"max_output_tokens":1})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string path = "/v1/responses/" + member(answer.body, "/id") + "/input_items";
  const auto newest = server.get(path + "?limit=2");
  EXPECT_EQ(member(newest.body, "/first_id"), "msg_mine");
  EXPECT_EQ(member(newest.body, "/data/1/content"), "b");
  EXPECT_EQ(member(newest.body, "/has_more"), "true");
  const auto rest = server.get(path + "?limit=2&after=" + member(newest.body, "/last_id"));
  EXPECT_EQ(member(rest.body, "/data/0/content"), "a");
  EXPECT_EQ(member(rest.body, "/has_more"), "false");
  EXPECT_EQ(member(server.get(path + "?order=asc").body, "/data/0/content"), "a");
  EXPECT_EQ(server.get(path + "?limit=0").status, 400);
  EXPECT_EQ(server.get(path + "?order=up").status, 400);
  EXPECT_EQ(server.get(path + "?after=msg_none").status, 400);
}

TEST(Responses, NobodySeesAnothersResponses) {
  TestApi server(
      {.config = {.api_keys = {{.secret = "ka", .name = "a"}, {.secret = "kb", .name = "b"}}}});
  const std::string a = "Authorization: Bearer ka\r\n", b = "Authorization: Bearer kb\r\n";
  const auto answer = server.post("/v1/responses", std::string(kHi) + "}", a);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string id = member(answer.body, "/id");
  EXPECT_EQ(server.get("/v1/responses/" + id, a).status, 200);
  EXPECT_EQ(server.get("/v1/responses/" + id, b).status, 404);
  const auto stolen = server.post(
      "/v1/responses", std::string(kHi) + R"(,"previous_response_id":")" + id + "\"}", b);
  EXPECT_EQ(error_code(stolen.body), "previous_response_not_found");
}

TEST(Responses, KeepsNothingWithoutAStore) {
  ApiConfig config;
  config.responses_bytes_max = 0;
  TestApi server({.config = config});
  const auto answer = server.post("/v1/responses", std::string(kHi) + "}");
  EXPECT_EQ(member(answer.body, "/store"), "false");
  EXPECT_EQ(server.get("/v1/responses/" + member(answer.body, "/id")).status, 404);
}

TEST(Responses, TruncatesOnlyWhenAsked) {
  TestApi server;
  std::string input = R"({"role":"system","content":"s"})";
  for (int i = 0; i < 60; ++i)
    input += R"(,{"role":"user","content":")" + std::string(200, 'x') + "\"}";
  const std::string body = R"({"max_output_tokens":4,"input":[)" + input + "]";
  const auto refused = server.post("/v1/responses", body + "}");
  EXPECT_EQ(error_code(refused.body), "context_length_exceeded");
  const auto answer = server.post("/v1/responses", body + R"(,"truncation":"auto"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(member(answer.body, "/truncation"), "auto");
  const auto one = server.post(
      "/v1/responses", R"({"truncation":"auto","input":")" + std::string(60 * 200, 'x') + "\"}");
  EXPECT_EQ(error_code(one.body), "context_length_exceeded");
}

// --- The shape alone: what the alphabet's model does not say.

constexpr const char* kNamespaces =
    R"(,"tools":[{"type":"namespace","name":"mcp__sums","tools":[{"type":"function","name":"add",)"
    R"("parameters":{"type":"object","properties":{"a":{"const":1}},"required":["a"],)"
    R"("additionalProperties":false}}]},{"type":"web_search"}],"tool_choice":"required")";

TEST(Responses, CallsNameTheirNamespace) {
  TestApi server;
  const auto answer = server.post("/v1/responses", std::string(kHi) + kNamespaces + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(member(answer.body, "/output/0/type"), "function_call") << answer.body;
  EXPECT_EQ(member(answer.body, "/output/0/name"), "add");
  EXPECT_EQ(member(answer.body, "/output/0/namespace"), "mcp__sums");
  const auto streamed =
      server.post("/v1/responses", std::string(kHi) + kNamespaces + R"(,"stream":true})");
  const std::vector<Event> events = events_of(streamed.body);
  for (const Event& event : events)
    if (event.name.starts_with("response.output_item")) {
      EXPECT_EQ(member(event.data, "/item/namespace"), "mcp__sums") << event.data;
      EXPECT_EQ(member(event.data, "/item/name"), "add");
    }
}

TEST(Responses, CustomToolsGetTextsThatTheirGrammarAllows) {
  TestApi server;
  const std::string body =
      std::string(kHi) +
      R"(,"tools":[{"type":"custom","name":"run","format":{"type":"grammar","syntax":"lark",)"
      R"("definition":"start: \"say \\\"\" /[a-c]{3}/ LF\n%import common.LF"}}],)"
      R"("tool_choice":{"type":"custom","name":"run"})";
  const auto answer = server.post("/v1/responses", body + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(member(answer.body, "/output/0/type"), "custom_tool_call") << answer.body;
  EXPECT_TRUE(member(answer.body, "/output/0/id").starts_with("ctc_"));
  EXPECT_EQ(member(answer.body, "/output/0/name"), "run");
  const std::string input = member(answer.body, "/output/0/input");
  ASSERT_EQ(input.size(), 9u) << input;
  EXPECT_TRUE(input.starts_with("say \"") && input.ends_with("\n")) << input;
  EXPECT_EQ(input.substr(5, 3).find_first_not_of("abc"), std::string::npos) << input;

  const std::vector<Event> events =
      events_of(server.post("/v1/responses", body + R"(,"stream":true})").body);
  EXPECT_EQ(names_of(events),
            "created in_progress output_item.added custom_tool_call_input.delta "
            "custom_tool_call_input.done output_item.done completed ");
  EXPECT_EQ(member(events[2].data, "/item/input"), "");
  EXPECT_EQ(member(events[3].data, "/delta"), member(events[4].data, "/input"));
  EXPECT_EQ(member(events[5].data, "/item/input"), member(events[4].data, "/input"));
}

TEST(Responses, CountsTheTokensOfAnInput) {
  TestApi server;
  const auto answer = server.post("/v1/responses/input_tokens", std::string(kHi) + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, R"({"object":"response.input_tokens","input_tokens":19})");
  // Of what it continues, too.
  const auto first = server.post("/v1/responses", std::string(kHi) + "}");
  const auto next =
      server.post("/v1/responses/input_tokens", std::string(kHi) + R"(,"previous_response_id":")" +
                                                    member(first.body, "/id") + "\"}");
  EXPECT_EQ(next.body, R"({"object":"response.input_tokens","input_tokens":45})");
  EXPECT_EQ(server.post("/v1/responses/input_tokens", R"({"model":"other","input":"Hi"})").status,
            404);
  EXPECT_EQ(server.post("/v1/responses/input_tokens", R"({"model":"m"})").status, 400);
}

// The text in one piece: else as they were streamed.
TEST(Responses, StoredOnesAreReplayedAsEvents) {
  TestApi server;
  for (const std::string& more :
       {std::string(), std::string(kNamespaces) + R"(,"parallel_tool_calls":false)"}) {
    const auto first = server.post("/v1/responses", std::string(kHi) + more + R"(,"stream":true})");
    std::vector<Event> events = events_of(first.body);
    const std::string id = member(events[0].data, "/response/id");
    const auto replay = server.get("/v1/responses/" + id + "?stream=true");
    ASSERT_EQ(replay.status, 200) << replay.body;
    EXPECT_EQ(replay.header("Content-Type"), "text/event-stream; charset=utf-8");
    const std::vector<Event> again = events_of(replay.body);
    std::string whole;
    std::erase_if(events, [&](const Event& event) {
      if (!event.name.ends_with(".delta")) return false;
      whole += member(event.data, "/delta");
      return whole.size() > member(event.data, "/delta").size();  // All but the first.
    });
    ASSERT_EQ(names_of(again), names_of(events));
    const auto unnumbered = [](std::string data) {
      replace_runs(data, R"("sequence_number":)", "0123456789", 1, "N");
      return data;
    };
    for (size_t i = 0; i < again.size(); ++i) {
      if (again[i].name.ends_with(".delta"))
        EXPECT_EQ(member(again[i].data, "/delta"), whole);
      else
        EXPECT_EQ(unnumbered(again[i].data), unnumbered(events[i].data));
    }
    const auto rest = server.get("/v1/responses/" + id + "?stream=true&starting_after=3");
    EXPECT_EQ(replay.body.substr(replay.body.size() - rest.body.size()), rest.body);
    EXPECT_NE(rest.body.find(R"("sequence_number":4)"), std::string::npos);
    EXPECT_EQ(rest.body.find(R"("sequence_number":3,)"), std::string::npos);
    EXPECT_EQ(server.get("/v1/responses/" + id + "?stream=maybe").status, 400);
    EXPECT_EQ(server.get("/v1/responses/" + id + "?stream=true&starting_after=x").status, 400);
    EXPECT_EQ(server.get("/v1/responses/" + id + "?stream=false").body[0], '{');
  }
  EXPECT_EQ(server.get("/v1/responses/resp_1?stream=true").status, 404);
}

TEST(Responses, NothingRunsInTheBackgroundToBeCancelled) {
  TestApi server;
  const auto first = server.post("/v1/responses", std::string(kHi) + "}");
  const auto refused = server.post("/v1/responses/" + member(first.body, "/id") + "/cancel", "{}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(member(refused.body, "/error/message").starts_with("Cannot cancel a synchronous"));
  EXPECT_EQ(member(refused.body, "/error/type"), "invalid_request_error");
  EXPECT_EQ(server.post("/v1/responses/resp_1/cancel", "").status, 404);
}

ResponseFacts facts(bool stream, bool summary = false) {
  return {.id = "resp_1",
          .created = 5,
          .stream = stream,
          .summary = summary,
          .settings = R"("model":"m")"};
}

TEST(ResponsesShape, ReasoningTextAndCallsAreItems) {
  std::string out;
  const auto shape = make_responses_shape(facts(true));
  shape->begin(out, {});
  shape->begin_choice(out, {});
  shape->reasoning(out, {}, "hm");
  shape->text(out, {}, "I ask.");
  shape->begin_call(out, {}, {0, "c1", "f"});
  shape->call_arguments(out, {}, 0, "{\"a\":");
  shape->call_arguments(out, {}, 0, "1}");
  shape->end_call(out, {}, 0);
  shape->finish(out, {}, {FinishKind::kCalls, {}});
  shape->end(out, {.prompt_tokens = 1, .completion_tokens = 2, .reasoning_tokens = 1});
  const std::vector<Event> events = events_of(out);
  EXPECT_EQ(names_of(events),
            "created in_progress output_item.added content_part.added reasoning_text.delta "
            "reasoning_text.done content_part.done output_item.done output_item.added "
            "content_part.added output_text.delta output_text.done content_part.done "
            "output_item.done output_item.added function_call_arguments.delta "
            "function_call_arguments.delta function_call_arguments.done output_item.done "
            "completed ");
  EXPECT_EQ(member(events.back().data, "/response/output"),
            R"([{"id":"rs_10","type":"reasoning","summary":[],"content":[)"
            R"({"type":"reasoning_text","text":"hm"}],"encrypted_content":null,)"
            R"("status":"completed"},{"id":"msg_11","type":"message","role":"assistant",)"
            R"("status":"completed","content":[{"type":"output_text","annotations":[],)"
            R"("logprobs":[],"text":"I ask."}]},{"id":"fc_12","type":"function_call",)"
            R"("status":"completed","call_id":"c1","name":"f","arguments":"{\"a\":1}"}])");
}

TEST(ResponsesShape, ReasoningIsASummaryWhereOneIsAskedFor) {
  std::string out;
  const auto shape = make_responses_shape(facts(true, true));
  shape->begin(out, {});
  shape->reasoning(out, {}, "hm");
  shape->finish(out, {}, {FinishKind::kLength, {}});
  shape->end(out, {});
  const std::vector<Event> events = events_of(out);
  EXPECT_EQ(names_of(events),
            "created in_progress output_item.added reasoning_summary_part.added "
            "reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done "
            "output_item.done incomplete ");
  EXPECT_EQ(member(events[4].data, "/summary_index"), "0");
  EXPECT_EQ(member(events.back().data, "/response/output/0/summary/0/text"), "hm");
  EXPECT_EQ(member(events.back().data, "/response/output/0/status"), "incomplete");
}

TEST(ResponsesShape, FailsWithAnErrorAndTheResponse) {
  std::string out;
  const auto shape = make_responses_shape(facts(true));
  shape->begin(out, {});
  shape->text(out, {}, "half");
  shape->fail(out, Error{ErrorCode::kIo, "Broken."});
  const std::vector<Event> events = events_of(out);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.back().name, "response.failed");
  EXPECT_EQ(member(events.back().data, "/response/status"), "failed");
  EXPECT_EQ(member(events.back().data, "/response/error/message"), "Broken.");
  EXPECT_EQ(member(events.back().data, "/response/output/0/content/0/text"), "half");
  const auto error = std::ranges::find(events, "error", &Event::name);
  ASSERT_NE(error, events.end());
  EXPECT_EQ(member(error->data, "/message"), "Broken.");
  EXPECT_EQ(member(error->data, "/error/message"), "Broken.");
}

TEST(ResponsesShape, ACutCallIsIncomplete) {
  std::string out;
  const auto shape = make_responses_shape(facts(false));
  shape->begin(out, {});
  shape->begin_call(out, {}, {0, "c1", "f"});
  shape->call_arguments(out, {}, 0, "{\"a");
  shape->finish(out, {}, {FinishKind::kLength, {}});
  EXPECT_EQ(out, "");
  shape->end(out, {});
  EXPECT_EQ(member(out, "/output/0/status"), "incomplete");
  EXPECT_EQ(member(out, "/output/0/arguments"), "{\"a");
}

}  // namespace
}  // namespace weir::api::responses
