#include "api/llama/protocol.h"

#include <utility>

#include "api/llama/completion.h"
#include "api/llama/infill.h"
#include "api/llama/shape.h"
#include "api/request/json_fields.h"
#include "api/serving/model_name.h"

namespace weir::api::llama {

namespace {

constexpr ProtocolTraits kTraits{
    .prompt_field = "prompt", .is_chat = false, .logprobs = LogprobStyle::Form::kLlama};

class LlamaProtocol : public Protocol {
 public:
  Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                 const PrepareInput& in) override {
    WEIR_ASSIGN(const openai::Request request, parse(serving, in.body));
    WEIR_ASSIGN(PreparedAnswer answer, prepare_request(serving, budget, in, kTraits, request));
    facts_ = {.model = model_shown(serving.config, request.model),
              .tokenizer = serving.config.tokenizer,
              .settings = generation_settings(request, *answer.requests.front().request),
              .stream = request.stream,
              .list = answer.requests.size() > 1,
              .choices = static_cast<int32_t>(answer.requests.size())};
    return answer;
  }

  std::unique_ptr<AnswerShape> shape(const PreparedAnswer&) override {
    return make_llama_shape(std::move(facts_));
  }

 private:
  virtual Result<openai::Request> parse(const ServingContext& serving,
                                        std::string_view body) const = 0;

  LlamaFacts facts_;
};

class CompletionProtocol final : public LlamaProtocol {
  Result<openai::Request> parse(const ServingContext& serving,
                                std::string_view body) const override {
    return parse_llama_completion(body, {serving.config.vocab_size});
  }
};

class InfillProtocol final : public LlamaProtocol {
  Result<openai::Request> parse(const ServingContext& serving,
                                std::string_view body) const override {
    WEIR_ASSIGN(openai::Request request, parse_infill(body, {serving.config.vocab_size}));
    if (!serving.infill)
      return unsupported("input_suffix",
                         "this model's vocabulary has no fill-in-the-middle tokens");
    return request;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_completion_protocol() {
  return std::make_unique<CompletionProtocol>();
}

std::unique_ptr<Protocol> make_infill_protocol() { return std::make_unique<InfillProtocol>(); }

}  // namespace weir::api::llama
