// Bodies of /v1/responses as conversations, and the store that they go on from.
#include "api/responses/request.h"

#include <gtest/gtest.h>

namespace weir::api::responses {
namespace {

constexpr std::string_view kFirst = "resp_00000000000000000000000000000001";
constexpr std::string_view kSecond = "resp_00000000000000000000000000000002";

ResponsesContext context_of(ResponseStore* store, std::string_view id = kFirst,
                            std::string_view owner = {}) {
  return {
      .limits = {256}, .id = id, .owner = owner, .now = 1000, .store = store, .preparing = nullptr};
}

std::string messages_of(const std::string& body) {
  const auto request = parse_responses(body, context_of(nullptr));
  return request ? request->generate.messages : request.error().message;
}

TEST(ResponsesRequest, ATextIsAMessageOfTheUser) {
  EXPECT_EQ(messages_of(R"({"input":"Hi"})"), R"([{"role":"user","content":"Hi"}])");
}

TEST(ResponsesRequest, SystemMessagesAtTheBeginningAreOne) {
  EXPECT_EQ(messages_of(R"({"instructions":"Be terse.","input":[
                {"role":"developer","content":"Be kind."},{"role":"user","content":"Hi"},
                {"role":"system","content":"Hurry."}]})"),
            R"([{"role":"system","content":"Be terse.\n\nBe kind."},)"
            R"({"role":"user","content":"Hi"},{"role":"system","content":"Hurry."}])");
}

TEST(ResponsesRequest, ItemsOfOneTurnAreOneMessage) {
  EXPECT_EQ(
      messages_of(R"({"input":[{"type":"message","role":"user","content":[
          {"type":"input_text","text":"Weather"},{"type":"input_text","text":"in Rome?"}]},
          {"type":"reasoning","id":"rs_1","summary":[],
           "content":[{"type":"reasoning_text","text":"Ask."}]},
          {"role":"assistant","content":[{"type":"output_text","text":"Let me see."}]},
          {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
          {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
          {"type":"function_call_output","call_id":"c1","output":"18"},
          {"type":"function_call_output","call_id":"c2",
           "output":[{"type":"input_text","text":"dry"}]},
          {"type":"reasoning","summary":[{"type":"summary_text","text":"Fine."}]},
          {"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},
          {"role":"user","content":"Why?"}]})"),
      R"([{"role":"user","content":"Weather\nin Rome?"},)"
      R"({"role":"assistant","content":"Let me see.","reasoning_content":"Ask.","tool_calls":[)"
      R"({"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}},)"
      R"({"id":"c2","type":"function","function":{"name":"g","arguments":{}}}]},)"
      R"({"role":"tool","content":"18","tool_call_id":"c1"},)"
      R"({"role":"tool","content":"dry","tool_call_id":"c2"},)"
      R"({"role":"assistant","content":"No.","reasoning_content":"Fine.","thinking":"Fine."},)"
      R"({"role":"user","content":"Why?"}])");
}

TEST(ResponsesRequest, ErrorsNameTheItem) {
  const auto error = [](const std::string& input) {
    const auto request = parse_responses(R"({"input":)" + input + "}", context_of(nullptr));
    return request ? std::string("accepted") : request.error().param + ": " + request.error().kind;
  };
  EXPECT_EQ(error("[]"), "input: invalid_value");
  EXPECT_EQ(error("7"), "input: invalid_type");
  EXPECT_EQ(error(R"([{"role":"user","content":"x"},{"role":"king","content":"x"}])"),
            "input[1].role: invalid_value");
  EXPECT_EQ(error(R"([{"type":"web_search_call","id":"x"}])"),
            "input[0].type: unsupported_parameter");
  EXPECT_EQ(error(R"([{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])"),
            "input[0].content[0].image_url: invalid_image_url");
  EXPECT_EQ(error(R"([{"type":"function_call","name":"f","arguments":"{}"}])"),
            "input[0].call_id: missing_required_parameter");
  EXPECT_EQ(error(R"([{"type":"item_reference","id":"msg_1"}])"), "input[0].id: ");
}

TEST(ResponsesRequest, ToolsLoseTheirFlatForm) {
  const auto request = parse_responses(
      R"({"input":"x","tools":[{"type":"web_search","external_web_access":false},
          {"type":"function","name":"f","description":"d","parameters":{"type":"object"},
           "strict":true}],"tool_choice":{"type":"function","name":"f"}})",
      context_of(nullptr));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->generate.tools,
            R"([{"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object"},"strict":true}}])");
  ASSERT_EQ(request->generate.functions.size(), 1u);
  EXPECT_TRUE(request->generate.functions[0].strict);
  EXPECT_EQ(request->generate.tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(request->tool_choice, R"({"type":"function","name":"f"})");
}

TEST(ResponsesRequest, TextFormatBindsTheAnswer) {
  const auto request = parse_responses(
      R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}})",
      context_of(nullptr));
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_TRUE(request->generate.grammar);
  EXPECT_EQ(request->generate.grammar->text, R"({"type":"object"})");
  EXPECT_EQ(request->generate.grammar_field, "text.format.schema");
}

void keep(ResponseStore& store, const ResponsesRequest& request, std::string_view id,
          const std::string& output, std::string_view owner = {}) {
  request.turn->output = output;
  store.put({.id = std::string(id),
             .owner = std::string(owner),
             .created = 1000,
             .head = "{",
             .tail = "}",
             .turn = request.turn,
             .lease = {}});
}

TEST(ResponsesRequest, GoesOnFromAStoredResponse) {
  ResponseStore store(1 << 20);
  const auto first =
      parse_responses(R"({"instructions":"Terse.","input":"Hi"})", context_of(&store));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->turn->input, R"({"id":"msg_000000000000000000000000000000010","type":"message",)"
                                R"("status":"completed","role":"user",)"
                                R"("content":[{"type":"input_text","text":"Hi"}]})");
  keep(store, *first, kFirst,
       R"({"id":"msg_000000000000000000000000000000011","type":"message","role":"assistant",)"
       R"("content":[{"type":"output_text","text":"Yo"}]})");
  const std::string previous = R"({"previous_response_id":")" + std::string(kFirst) + R"(",)";
  const auto second = parse_responses(previous + R"("instructions":"Kind.","input":"Why?"})",
                                      context_of(&store, kSecond));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->generate.messages,
            R"([{"role":"system","content":"Kind."},{"role":"user","content":"Hi"},)"
            R"({"role":"assistant","content":"Yo"},{"role":"user","content":"Why?"}])");

  // An item by its id alone.
  const auto referred = parse_responses(
      R"({"input":[{"type":"item_reference","id":"msg_000000000000000000000000000000011"},
          {"role":"user","content":"?"}]})",
      context_of(&store, kSecond));
  ASSERT_TRUE(referred) << referred.error().message;
  EXPECT_EQ(referred->generate.messages,
            R"([{"role":"assistant","content":"Yo"},{"role":"user","content":"?"}])");

  const auto strange = parse_responses(previous + R"("input":"Why?"})",
                                       context_of(&store, kSecond, "somebody else"));
  ASSERT_FALSE(strange);
  EXPECT_EQ(strange.error().kind, "previous_response_not_found");
  EXPECT_EQ(strange.error().param, "previous_response_id");
}

TEST(ResponsesRequest, StoresNothingUnasked) {
  ResponseStore off(0), on(1 << 20);
  EXPECT_FALSE(parse_responses(R"({"input":"x"})", context_of(&off))->store);
  EXPECT_TRUE(parse_responses(R"({"input":"x"})", context_of(&on))->store);
  const auto request = parse_responses(R"({"input":"x","store":false})", context_of(&on));
  EXPECT_FALSE(request->store);
  EXPECT_EQ(request->turn->input, "");
}

StoredResponse response_of(int number, size_t bytes, std::shared_ptr<ResponseTurn> previous = {}) {
  StoredResponse response;
  response.id = "resp_" + std::to_string(number);
  response.created = number;
  response.turn = std::make_shared<ResponseTurn>();
  response.turn->previous = std::move(previous);
  response.turn->output.assign(bytes, 'x');
  return response;
}

TEST(ResponseStore, ForgetsTheOldestAndKeepsWhatConversationsNeed) {
  ResponseStore store(10'000);
  store.put(response_of(1, 3'000));
  const auto first = store.find("resp_1", "", 1);
  ASSERT_TRUE(first);
  const std::shared_ptr<ResponseTurn> turn = first->turn;
  store.put(response_of(2, 3'000, turn));
  store.put(response_of(3, 3'000));
  // The first goes; its turn stays with the second, so the second has to go, too.
  EXPECT_FALSE(store.find("resp_1", "", 3));
  EXPECT_TRUE(store.find("resp_3", "", 3));
  EXPECT_LE(store.bytes(), 10'000u);
  store.put(response_of(4, 20'000));
  EXPECT_FALSE(store.find("resp_4", "", 4)) << "larger than the store";
  EXPECT_TRUE(store.find("resp_3", "", 4));
  EXPECT_TRUE(store.erase("resp_3", "", 4));
  EXPECT_FALSE(store.erase("resp_3", "", 4));
}

StoredResponse response_of_caller(uint64_t caller, int number, size_t bytes) {
  StoredResponse response = response_of(number, bytes);
  response.caller = caller;
  return response;
}

size_t kept(ResponseStore& store, int first, int count) {
  size_t kept = 0;
  for (int i = first; i < first + count; ++i)
    kept += store.find("resp_" + std::to_string(i), "", 1) ? 1 : 0;
  return kept;
}

TEST(ResponseStore, NobodyDropsTheResponsesOfOthersByMakingMany) {
  ResponseStore store(1'000'000);
  for (int i = 0; i < 10; ++i) store.put(response_of_caller(1, i, 9'000));
  for (int i = 10; i < 20; ++i) store.put(response_of_caller(2, i, 20'000));
  for (int i = 100; i < 300; ++i) store.put(response_of_caller(3, i, 90'000));
  EXPECT_EQ(kept(store, 0, 10), 10u);
  EXPECT_EQ(kept(store, 10, 10), 10u);
  EXPECT_EQ(kept(store, 100, 200), 7u) << "its own oldest go";
  EXPECT_TRUE(store.find("resp_299", "", 1));
  // Who comes later has room, at the cost of the one that has most.
  for (int i = 300; i < 400; ++i) store.put(response_of_caller(4, i, 9'000));
  EXPECT_EQ(kept(store, 0, 20), 20u);
  EXPECT_GE(kept(store, 300, 100), 30u);
  EXPECT_GE(kept(store, 100, 200), 3u);
}

TEST(ResponseStore, OneCallerAloneMayUseAllOfIt) {
  ResponseStore store(1'000'000);
  for (int i = 0; i < 20; ++i) store.put(response_of_caller(1, i, 90'000));
  EXPECT_EQ(kept(store, 0, 20), 11u);
  EXPECT_GT(store.bytes(), 900'000u);
}

TEST(ResponseStore, ALargeResponseDoesNotDropEverybodysSmallOnes) {
  ResponseStore store(1'000'000);
  for (int i = 0; i < 20; ++i) store.put(response_of_caller(static_cast<uint64_t>(i), i, 40'000));
  store.put(response_of_caller(100, 100, 900'000));
  EXPECT_FALSE(store.find("resp_100", "", 1));
  EXPECT_EQ(kept(store, 0, 20), 20u);
  store.put(response_of_caller(101, 101, 120'000));
  EXPECT_TRUE(store.find("resp_101", "", 1)) << "an eighth of the store is for whoever comes";
  store.put(response_of_caller(101, 102, 120'000));
  EXPECT_TRUE(store.find("resp_102", "", 1));
  store.put(response_of_caller(101, 103, 120'000));
  EXPECT_FALSE(store.find("resp_101", "", 1)) << "beyond it, its own go first";
}

TEST(ResponseStore, ManyTinyOnesDropTheirOwnCallersFirst) {
  ResponseStore store(size_t{1} << 30);
  for (int i = 0; i < 10; ++i) store.put(response_of_caller(1, i, 1'000'000));
  for (int i = 100; i < 100 + static_cast<int>(kResponsesMax); ++i)
    store.put(response_of_caller(2, i, 10));
  EXPECT_EQ(kept(store, 0, 10), 10u);
  EXPECT_EQ(store.count(), kResponsesMax);
}

TEST(ResponseStore, CountsNothingWhenAllIsGone) {
  ResponseStore store(1 << 20);
  {
    std::shared_ptr<ResponseTurn> turn;
    for (int i = 1; i <= 1000; ++i) {
      StoredResponse response = response_of(i, 10, turn);
      turn = response.turn;
      store.put(std::move(response));
    }
    EXPECT_EQ(store.count(), 1000u);
    for (int i = 1; i <= 999; ++i) EXPECT_TRUE(store.erase("resp_" + std::to_string(i), "", 1));
    EXPECT_GT(store.bytes(), 10'000u) << "the last still needs all turns";
  }
  EXPECT_TRUE(store.erase("resp_1000", "", 1000));
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, ForgetsWhatIsOld) {
  ResponseStore store(1 << 20);
  store.put(response_of(1, 10));
  EXPECT_TRUE(store.find("resp_1", "", 1 + kResponseAgeMax));
  EXPECT_FALSE(store.find("resp_1", "", 2 + kResponseAgeMax));
  EXPECT_EQ(store.count(), 0u);
}

TEST(ResponseStore, LongConversationsEndWithoutDeepRecursion) {
  auto turn = std::make_shared<ResponseTurn>();
  for (int i = 0; i < 1'000'000; ++i) {
    auto next = std::make_shared<ResponseTurn>();
    next->previous = std::move(turn);
    turn = std::move(next);
  }
  turn.reset();
}

}  // namespace
}  // namespace weir::api::responses
