// Arbitrary bytes as the body of a chat, a text completion, an infill, a response, or of Anthropic's
// or Ollama's requests: parsing ends, and whatever it accepts keeps its own limits.
#include <cstdint>
#include <string_view>

#include "api/anthropic/message_request.h"
#include "api/llama/infill.h"
#include "api/ollama/request.h"
#include "api/openai/request_fields.h"
#include "api/responses/request.h"
#include "base/check.h"

namespace {

constexpr weir::api::RequestLimits kLimits{32'000};

// Each picture that messages show has its source.
size_t images_in(const std::string& messages) {
  const auto doc = weir::JsonDoc::parse(messages, /*depth_max=*/512);
  weir::JsonArray array, parts;
  CHECK(doc && doc->root().get(array) == simdjson::SUCCESS);
  size_t images = 0;
  for (const weir::JsonValue message : array) {
    if (message["content"].get(parts) != simdjson::SUCCESS) continue;
    for (const weir::JsonValue part : parts) images += part["text"].error() != simdjson::SUCCESS;
  }
  return images;
}

void check_accepted(const weir::api::GenerateRequest& request) {
  CHECK(request.choices_per_prompt() >= 1 &&
        static_cast<size_t>(request.choices_per_prompt()) <= weir::api::kChoicesMax);
  CHECK(request.stop.size() <= weir::api::kStopStringsMax);
  for (const std::string& stop : request.stop) CHECK(!stop.empty());
  for (const auto& [token, bias] : request.logit_bias)
    CHECK(token >= 0 && token < kLimits.vocab_size && bias >= -100 && bias <= 100);
  for (const int32_t token : request.stop_token_ids)
    CHECK(token >= 0 && token < kLimits.vocab_size);
  CHECK(request.messages.empty() || images_in(request.messages) == request.media.size());
  for (const weir::api::MediaSource& picture : request.media) CHECK(!picture.field.empty());
  // What goes to the template is JSON again.
  for (const std::string* json : {&request.messages, &request.tools, &request.template_kwargs})
    CHECK(json->empty() || weir::JsonDoc::parse(*json, /*depth_max=*/512));
}

// Items as members of an array, each with an id.
void check_items(const std::string& items) {
  const auto doc = weir::JsonDoc::parse("[" + items + "]", /*depth_max=*/512);
  weir::JsonArray array;
  CHECK(doc && doc->root().get(array) == simdjson::SUCCESS);
  for (const weir::JsonValue item : array) {
    std::string_view id;
    CHECK(item["id"].get(id) == simdjson::SUCCESS);
  }
}

// A body, and what it has left to be continued.
void check_response(std::string_view body) {
  constexpr std::string_view kFirst = "resp_00000000000000000000000000000001";
  constexpr std::string_view kSecond = "resp_00000000000000000000000000000002";
  weir::api::responses::ResponseStore store(1 << 20);
  weir::api::responses::ResponsesContext context{.limits = kLimits,
                                                 .id = kFirst,
                                                 .owner = {},
                                                 .now = 1,
                                                 .store = &store,
                                                 .preparing = nullptr};
  const auto request = weir::api::responses::parse_responses(body, context);
  if (!request) {
    CHECK(!request.error().message.empty());
    return;
  }
  check_accepted(request->generate);
  check_items(request->turn->input);
  if (!request->store) return;
  store.put({.id = std::string(kFirst),
             .owner = {},
             .created = 1,
             .head = {},
             .tail = {},
             .turn = request->turn,
             .lease = {}});
  context.id = kSecond;
  const auto next = weir::api::responses::parse_responses(
      R"({"input":"and then?","previous_response_id":")" + std::string(kFirst) + "\"}", context);
  CHECK(next);
  check_accepted(next->generate);
}

void check(const weir::Result<weir::api::GenerateRequest>& request) {
  if (request)
    check_accepted(*request);
  else
    CHECK(!request.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto endpoint :
       {weir::api::openai::Endpoint::kChat, weir::api::openai::Endpoint::kCompletions})
    check(weir::api::openai::parse_generate(endpoint, body, kLimits));
  check(weir::api::llama::parse_infill(body, kLimits));
  check(weir::api::anthropic::parse_message_request(body, kLimits));
  check(weir::api::anthropic::parse_count_request(body, kLimits));
  check(weir::api::ollama::parse_chat(body, kLimits));
  check(weir::api::ollama::parse_generate(body, kLimits));
  check_response(body);
  return 0;
}
