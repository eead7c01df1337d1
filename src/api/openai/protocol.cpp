#include "api/openai/protocol.h"

#include <ctime>

#include "api/exchange/exchange.h"
#include "api/openai/chat_shape.h"

namespace weir::api::openai {

namespace {

constexpr ProtocolTraits kChatTraits{.prompt_field = "messages"};
constexpr ProtocolTraits kCompletionTraits{.prompt_field = "prompt",
                                           .is_chat = false,
                                           .max_tokens_default = 16,  // OpenAI's.
                                           .logprobs = LogprobStyle::Form::kCompletions};

class OpenAiProtocol final : public Protocol {
 public:
  explicit OpenAiProtocol(Endpoint endpoint) { facts_.endpoint = endpoint; }

  Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                 const PrepareInput& in) override {
    WEIR_ASSIGN(const Request request,
                parse_generate(facts_.endpoint, in.body, {serving.config.vocab_size}));
    facts_.stream = request.stream;
    facts_.choices_per_prompt = request.candidates_per_prompt();
    facts_.include_usage = request.include_usage;
    facts_.continuous_usage = request.continuous_usage;
    facts_.legacy_functions = request.legacy_functions;
    return prepare_request(serving, budget, in, is_chat() ? kChatTraits : kCompletionTraits,
                           request);
  }

  std::unique_ptr<AnswerShape> shape(const PreparedAnswer& prepared) override {
    facts_.id = random_id(is_chat() ? "chatcmpl-" : "cmpl-");
    facts_.model = prepared.model;
    facts_.created = std::time(nullptr);
    facts_.choices = static_cast<int32_t>(prepared.requests.size());
    return make_chat_shape(facts_);
  }

 private:
  bool is_chat() const { return facts_.endpoint == Endpoint::kChat; }

  ChatFacts facts_;
};

}  // namespace

std::unique_ptr<Protocol> make_protocol(Endpoint endpoint) {
  return std::make_unique<OpenAiProtocol>(endpoint);
}

}  // namespace weir::api::openai
