#include "api/anthropic/count_tokens.h"

#include "api/anthropic/message_request.h"
#include "api/prompt/prompt_tokens.h"
#include "api/serving/model_name.h"
#include "base/json.h"

namespace weir::api::anthropic {

Result<std::string> count_tokens(const ServingContext& serving, const PrepareInput& in) {
  WEIR_ASSIGN(const MessageRequest request,
              parse_count_request(in.body, RequestLimits{serving.config.vocab_size}));
  WEIR_TRY(check_model(serving.config, request.model));
  WEIR_ASSIGN(const PromptTokens prompt, count_chat(serving, in, "messages", request));
  std::string out;
  JsonWriter(out)
      .begin_object()
      .field("input_tokens", static_cast<int64_t>(prompt.ids.size()))
      .end_object();
  return out;
}

}  // namespace weir::api::anthropic
