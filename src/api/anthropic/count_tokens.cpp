#include "api/anthropic/count_tokens.h"

#include "api/anthropic/message_request.h"
#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_limits.h"
#include "api/serving/model_name.h"
#include "base/json.h"

namespace weir::api::anthropic {

Result<std::string> count_tokens(const ServingContext& serving, std::string_view body, int64_t now,
                                 int32_t tokens_max) {
  WEIR_ASSIGN(const MessageRequest request,
              parse_count_request(body, RequestLimits{serving.config.vocab_size}));
  WEIR_TRY(check_model(serving.config, request.model));
  WEIR_ASSIGN(const std::string prompt, render_chat(serving, request, now));
  WEIR_ASSIGN(const std::vector<int32_t> ids,
              tokenise(serving.config, "messages", tokens_max, prompt,
                       {.add_special = false, .parse_special = true}));
  std::string out;
  JsonWriter(out)
      .begin_object()
      .field("input_tokens", static_cast<int64_t>(ids.size()))
      .end_object();
  return out;
}

}  // namespace weir::api::anthropic
