// Arbitrary bytes as the body of a chat or text completion: parsing ends, and whatever it accepts
// keeps its own limits.
#include <cstdint>
#include <string_view>

#include "api/generate_request.h"
#include "base/check.h"

namespace {

constexpr weir::api::RequestLimits kLimits{32'000};

void check_accepted(const weir::api::GenerateRequest& request) {
  CHECK(request.choices_per_prompt() >= 1 &&
        static_cast<size_t>(request.choices_per_prompt()) <= weir::api::kChoicesMax);
  CHECK(request.stop.size() <= weir::api::kStopStringsMax);
  for (const std::string& stop : request.stop) CHECK(!stop.empty());
  for (const auto& [token, bias] : request.logit_bias)
    CHECK(token >= 0 && token < kLimits.vocab_size && bias >= -100 && bias <= 100);
  for (const int32_t token : request.stop_token_ids)
    CHECK(token >= 0 && token < kLimits.vocab_size);
  // What goes to the template is JSON again.
  for (const std::string* json : {&request.messages, &request.tools, &request.template_kwargs})
    CHECK(json->empty() || weir::JsonDoc::parse(*json, /*depth_max=*/512));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto endpoint : {weir::api::Endpoint::kChat, weir::api::Endpoint::kCompletions}) {
    const auto request = weir::api::parse_generate(endpoint, body, kLimits);
    if (request)
      check_accepted(*request);
    else
      CHECK(!request.error().message.empty());
  }
  return 0;
}
