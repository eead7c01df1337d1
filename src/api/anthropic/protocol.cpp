#include "api/anthropic/protocol.h"

#include "api/anthropic/message_request.h"
#include "api/anthropic/message_shape.h"
#include "api/exchange/exchange.h"
#include "api/serving/model_name.h"

namespace weir::api::anthropic {

namespace {

constexpr ProtocolTraits kTraits{.prompt_field = "messages", .call_id_prefix = "toolu_"};

// Clients get thinking that they, or the server, have asked for.
bool shows_reasoning(const ApiConfig& config, const MessageRequest& request) {
  if (request.hide_reasoning) return false;
  if (request.enable_thinking) return *request.enable_thinking;
  return config.thinking.value_or(request.thinking_unasked.value_or(true));
}

class MessageProtocol final : public Protocol {
 public:
  Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                 const PrepareInput& in) override {
    WEIR_ASSIGN(const MessageRequest request,
                parse_message_request(in.body, {serving.config.vocab_size}));
    facts_.model = model_shown(serving.config, request.model);
    facts_.stream = request.stream;
    facts_.show_reasoning = shows_reasoning(serving.config, request);
    return prepare_request(serving, budget, in, kTraits, request);
  }

  std::unique_ptr<AnswerShape> shape(const PreparedAnswer&) override {
    facts_.id = random_id("msg_");
    return make_message_shape(facts_);
  }

 private:
  MessageFacts facts_;
};

}  // namespace

std::unique_ptr<Protocol> make_protocol() { return std::make_unique<MessageProtocol>(); }

}  // namespace weir::api::anthropic
