#include "api/serving/reasoning_limit.h"

#include <algorithm>

namespace weir::api {

int64_t reasoning_budget(const ApiConfig& config, const GenerateRequest& request) {
  return request.reasoning_budget.value_or(config.reasoning_budget);
}

std::shared_ptr<const sample::ReasoningLimit> reasoning_limit(const ApiConfig& config,
                                                              const GenerateRequest& request,
                                                              const OutputPlan& plan) {
  const int64_t budget = reasoning_budget(config, request);
  if (budget < 0 || !plan.reasoning) return nullptr;
  const output::ReasoningFormat& format = *plan.reasoning;
  auto limit = std::make_shared<sample::ReasoningLimit>();
  limit->tokens_max = static_cast<int32_t>(std::min<int64_t>(budget, INT32_MAX));
  limit->open = format.open;
  limit->close = format.close;
  limit->begun = plan.reasoning_begun;
  limit->anywhere = format.messages;
  const text::Tokenizer& tokenizer = *config.tokenizer;
  // An answer that may not think at all has nothing to break off.
  if (budget > 0)
    tokenizer.encode(request.reasoning_budget_message.value_or(config.reasoning_budget_message),
                     {.add_special = false, .parse_special = false}, limit->closing);
  tokenizer.encode(std::string(format.close).append(format.after),
                   {.add_special = false, .parse_special = true}, limit->closing);
  limit->text_of = [&tokenizer](int32_t token) { return tokenizer.piece(token); };
  return limit;
}

}  // namespace weir::api
