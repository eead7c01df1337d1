#include "api/ollama/protocol.h"

#include "api/ollama/names.h"
#include "api/ollama/request.h"
#include "api/request/json_fields.h"
#include "api/serving/model_name.h"
#include "base/concat.h"

namespace weir::api::ollama {

namespace {

constexpr ProtocolTraits kChatTraits{.prompt_field = "messages",
                                     .logprobs = LogprobStyle::Form::kResponses};
constexpr ProtocolTraits kPromptTraits{.prompt_field = "prompt",
                                       .logprobs = LogprobStyle::Form::kResponses};
constexpr ProtocolTraits kTextTraits{
    .prompt_field = "prompt", .is_chat = false, .logprobs = LogprobStyle::Form::kResponses};

using Parser = Result<Request> (*)(std::string_view body, const RequestLimits& limits);

// In Ollama's words: clients ask again without thinking then.
Result<void> check_thinking(const ServingContext& serving, const Request& request) {
  if (!request.wants_thinking || serving.outputs.reasoning != nullptr) return {};
  return fail(ErrorCode::kUnsupported,
              concat({"\"", shown(request.shown_model), "\" does not support thinking"}), "think",
              "unsupported_parameter");
}

class BodyProtocol final : public OllamaProtocol {
 public:
  explicit BodyProtocol(bool chat) : chat_(chat) {}

  Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                 const PrepareInput& in) override {
    const Parser parse = chat_ ? &parse_chat : &parse_generate;
    WEIR_ASSIGN(Request request, parse(in.body, {serving.config.vocab_size}));
    if (!check_model(serving.config, request.model))
      return tl::unexpected(not_found(request.shown_model));
    facts_ = {.model = request.shown_model.empty() ? serving.config.model_id : request.shown_model,
              .chat = chat_,
              .stream = request.stream,
              .arrived = in.arrived};
    keep_alive_s_ = request.keep_alive_s;
    if (request.is_empty()) {
      order_ = {.model = request.model,
                .unload = request.keep_alive_s == 0.0,
                .keep_alive_s = request.keep_alive_s,
                .facts = facts_};
      return PreparedAnswer();
    }
    WEIR_TRY(check_thinking(serving, request));
    if (chat_) return prepare_request(serving, budget, in, kChatTraits, request);
    WEIR_TRY(complete(request, serving.config.chat_template != nullptr));
    return prepare_request(serving, budget, in,
                           is_conversation(request) ? kPromptTraits : kTextTraits, request);
  }

  std::unique_ptr<AnswerShape> shape(const PreparedAnswer&) override { return make_shape(facts_); }
  const std::optional<ModelOrder>& order() const override { return order_; }
  std::optional<double> keep_alive_s() const override { return keep_alive_s_; }

 private:
  const bool chat_;
  AnswerFacts facts_;
  std::optional<ModelOrder> order_;
  std::optional<double> keep_alive_s_;
};

}  // namespace

std::shared_ptr<OllamaProtocol> make_chat_protocol() {
  return std::make_shared<BodyProtocol>(/*chat=*/true);
}

std::shared_ptr<OllamaProtocol> make_generate_protocol() {
  return std::make_shared<BodyProtocol>(/*chat=*/false);
}

}  // namespace weir::api::ollama
