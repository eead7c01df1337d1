#include "api/vectors/rerank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "api/memory/memory_cost.h"
#include "api/memory/request_memory.h"
#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_limits.h"
#include "api/prompt/prompt_tokens.h"
#include "api/request/json_fields.h"
#include "api/serving/model_name.h"
#include "api/vectors/rerank_request.h"
#include "base/json.h"

namespace weir::api::vectors {

namespace {

// What a model is told whose chat template does not say it itself (RerankConfig::roles), and the
// task where a request names none.
constexpr std::string_view kJudge =
    "You are given an instruction, a query and a document. Does the document meet what the "
    "instruction and the query ask for? Answer \"yes\" or \"no\" and nothing else.";
constexpr std::string_view kTask = "Find the passages that answer the query.";

// Where a text that is cut meets the template its tokens may be others: so many fewer are taken.
constexpr int64_t kSeamTokens = 4;

// A result's JSON beside its document, and its score and place.
constexpr size_t kResultBytes = 96 + sizeof(double) + sizeof(size_t);

// Yes and no.
constexpr int32_t kJudgedTokens = 2;

Result<void> check_reranks(const ApiConfig& config) {
  if (config.rerank.reranks()) return {};
  const std::string& refusal = config.rerank.refusal;
  return fail(ErrorCode::kUnsupported,
              "Unsupported: this model is no reranker" +
                  (refusal.empty() ? "" : " (" + refusal + ")") +
                  ". One that judges with yes or no is known by a LogitScore module in its "
                  "modules.json, or served with --reranker yes-no.",
              "model", "unsupported_endpoint");
}

void write_message(JsonWriter& json, std::string_view role, std::string_view content) {
  json.begin_object().field("role", role).field("content", content).end_object();
}

// The instruction that sentence-transformers' files put before a query, if any.
std::string_view default_instruction(const card::EmbeddingSettings& config) {
  for (const auto& [name, text] : config.prompts)
    if (name == config.default_prompt) return text;
  return {};
}

// The conversation in which the model judges one document.
std::string messages_of(const ApiConfig& config, const RerankRequest& request,
                        const std::string& query, const std::string& document) {
  std::string messages;
  JsonWriter json(messages);
  json.begin_array();
  if (config.rerank.roles) {
    const std::string instruction =
        request.instruction.value_or(std::string(default_instruction(config.embedding)));
    if (!instruction.empty()) write_message(json, "system", instruction);
    write_message(json, "query", query);
    write_message(json, "document", document);
  } else {
    write_message(json, "system", kJudge);
    write_message(json, "user",
                  "<Instruct>: " + request.instruction.value_or(std::string(kTask)) +
                      "\n<Query>: " + query + "\n<Document>: " + document);
  }
  json.end_array();
  return messages;
}

// The beginning of a text.
std::string first_tokens(const ApiConfig& config, const std::string& text, int64_t count) {
  const std::vector<int32_t> ids = config.tokenizer->encode(text, {.parse_special = false});
  if (std::ssize(ids) <= count) return text;
  return config.tokenizer->decode(
      std::span(ids).first(static_cast<size_t>(std::max<int64_t>(count, 0))),
      /*skip_special=*/false);
}

// The prompt of one document, and where it has more than `tokens_max` tokens that of a shorter one.
Result<std::vector<int32_t>> fitting_prompt(const ServingContext& serving, const PrepareInput& in,
                                            const RerankRequest& request, size_t index,
                                            const std::string& field, int64_t tokens_max) {
  std::string document = request.documents[index];
  const bool cuts = request.prompt_tokens_max.has_value();
  const Truncation any_length{cuts ? request.prompt_tokens_max : std::nullopt, false};
  WEIR_TRY(check_text_length(serving.config, field, uncut_tokens_max(any_length, in.tokens_max),
                             document, {.parse_special = false}));
  if (request.document_tokens_max)
    document = first_tokens(serving.config, document, *request.document_tokens_max);
  GenerateRequest chat;
  chat.enable_thinking = false;  // The next token is the answer.
  const auto encode = [&]() -> Result<std::vector<int32_t>> {
    chat.messages = messages_of(serving.config, request, request.query_of(index), document);
    WEIR_ASSIGN(const std::string text, render_chat(serving, chat, in.now));
    return tokenise(serving.config, field, uncut_tokens_max(any_length, in.tokens_max), text,
                    {.add_special = false, .parse_special = true});
  };
  WEIR_ASSIGN(std::vector<int32_t> prompt, encode());
  if (!cuts || std::ssize(prompt) <= tokens_max) return prompt;
  const auto whole =
      std::ssize(serving.config.tokenizer->encode(document, {.parse_special = false}));
  document = first_tokens(serving.config, document,
                          whole - (std::ssize(prompt) - tokens_max) - kSeamTokens);
  return encode();
}

Result<std::vector<int32_t>> prompt_of(const ServingContext& serving, const PrepareInput& in,
                                       const RerankRequest& request, size_t document) {
  const std::string field = request.document_field + "[" + std::to_string(document) + "]";
  const int64_t room = in.tokens_max - 1;
  const int64_t asked = request.prompt_tokens_max.value_or(-1);
  WEIR_ASSIGN(std::vector<int32_t> prompt,
              fitting_prompt(serving, in, request, document, field, asked > 0 ? asked : room));
  if (prompt.empty()) return out_of_range(field, "expected at least one token, found none");
  WEIR_TRY(check_prompt_length(serving.config, field, std::ssize(prompt), 1, in.tokens_max));
  return prompt;
}

// Memory is taken as the prompts appear: each may be as long as the context. `whole` is taken. The
// batch gets the task.
Result<void> add_prompts(const ServingContext& serving, MemoryBudget& budget,
                         const PrepareInput& in, const RerankRequest& request,
                         std::unique_ptr<PromptTask> task, PreparedBatch& batch) {
  batch.ignored = request.ignored;
  batch.priority = in.priority_min;
  const size_t one_bytes = request_bytes(0, 1, kJudgedTokens);
  PromptList prompts;
  WEIR_ASSIGN(batch.computing, lease(budget, in.caller, 0));
  for (size_t i = 0; i < request.documents.size(); ++i) {
    WEIR_ASSIGN(const std::vector<int32_t> prompt, prompt_of(serving, in, request, i));
    prompts.add(prompt);
    batch.lent_bytes = lent_bytes(prompts, one_bytes, budget.bytes_max());
    const size_t computing = prompts.memory_bytes() + batch.lent_bytes;
    WEIR_TRY(check_growing_memory(budget, request.document_field, batch.whole.bytes() + computing,
                                  "fewer texts"));
    WEIR_TRY(grow(budget, batch.computing, computing - batch.computing.bytes()));
  }
  batch.prompt_tokens = static_cast<int64_t>(prompts.tokens());
  task->set_prompts(std::move(prompts), one_bytes);
  batch.task = std::move(task);
  return {};
}

// The odds of each document.
class JudgementTask : public PromptTask {
 public:
  JudgementTask(const ApiConfig& config, size_t documents)
      : yes_(config.rerank.yes), no_(config.rerank.no), odds_(documents) {}

  std::unique_ptr<sched::Request> request(std::vector<int32_t> prompt) const override {
    sample::SamplingParams params;
    params.temperature = 0;
    params.reported = {yes_, no_};
    params.top_logprobs = kJudgedTokens;
    return std::make_unique<sched::Request>(std::move(prompt), std::move(params),
                                            /*max_tokens=*/1, /*logprobs=*/true);
  }
  void keep(size_t index, sched::Request& finished) override {
    gave_all_ = gave_all_ && finished.log.size() == 1;
    if (!gave_all_) return;
    const auto judged = finished.log.top(0);
    odds_[index] = double{judged[1].logprob} - double{judged[0].logprob};
  }
  Result<size_t> finish() override {
    if (!gave_all_) return fail(ErrorCode::kIo, "The model gave no judgement.");
    if (std::ranges::any_of(odds_, [](double odds) { return std::isnan(odds); }))
      return fail(ErrorCode::kIo, "The model gave logits that are no numbers.");
    return odds_.size();
  }

 protected:
  // e^yes / (e^yes + e^no).
  double probability(size_t document) const { return 1 / (1 + std::exp(odds_[document])); }
  // The difference of the logits.
  double raw_score(size_t document) const { return -odds_[document]; }

 private:
  const int32_t yes_, no_;
  std::vector<double> odds_;  // Of no against yes, as logarithms.
  bool gave_all_ = true;
};

// The end of an object.
void append_usage(std::string& out, int64_t prompt_tokens) {
  out += ',';
  JsonWriter json(out);
  json.key("usage").begin_object().field("prompt_tokens", prompt_tokens);
  json.field("total_tokens", prompt_tokens).end_object().end_object();
}

// What an answer says of its request.
struct RankingFacts {
  RerankForm form = RerankForm::kList;
  bool raw_scores = false;
  std::string id, model;
  size_t top_n = 0;
  std::vector<std::string> documents;  // The JSON of each text, or none of them.
};

class RankingTask final : public JudgementTask {
 public:
  RankingTask(const ApiConfig& config, RankingFacts facts, size_t documents)
      : JudgementTask(config, documents), facts_(std::move(facts)) {}

  Result<size_t> finish() override;
  void append_head(std::string& out) const override;
  void append_item(std::string& out, size_t item) const override;
  void append_tail(std::string& out, int64_t prompt_tokens) const override;

 private:
  double score(size_t document) const {
    return facts_.raw_scores ? raw_score(document) : probability(document);
  }

  const RankingFacts facts_;
  std::vector<size_t> order_;  // Of documents, the best first.
};

Result<size_t> RankingTask::finish() {
  WEIR_ASSIGN(const size_t documents, JudgementTask::finish());
  order_.resize(documents);
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, std::greater<>(), [this](size_t i) { return score(i); });
  order_.resize(std::min(documents, facts_.top_n));
  return order_.size();
}

void RankingTask::append_head(std::string& out) const {
  if (facts_.form != RerankForm::kTei) {
    JsonWriter json(out);
    json.begin_object().field("id", facts_.id);
    if (facts_.form == RerankForm::kList) json.field("object", "list").field("model", facts_.model);
    json.key("results");
  }
  out += '[';
}

void RankingTask::append_item(std::string& out, size_t item) const {
  if (item > 0) out += ',';
  const size_t index = order_[item];
  const bool tei = facts_.form == RerankForm::kTei;
  JsonWriter json(out);
  json.begin_object().field("index", static_cast<int64_t>(index));
  json.field(tei ? "score" : "relevance_score", score(index));
  if (!facts_.documents.empty()) {
    if (tei)
      json.key("text").raw(facts_.documents[index]);
    else
      json.key("document").begin_object().key("text").raw(facts_.documents[index]).end_object();
  }
  json.end_object();
}

void RankingTask::append_tail(std::string& out, int64_t prompt_tokens) const {
  out += ']';
  if (facts_.form == RerankForm::kList)
    append_usage(out, prompt_tokens);
  else if (facts_.form == RerankForm::kCohere)
    out += R"(,"meta":{"api_version":{"version":"2","is_experimental":false},)"
           R"("billed_units":{"search_units":1}}})";
}

class ScoreTask final : public JudgementTask {
 public:
  ScoreTask(const ApiConfig& config, const PrepareInput& in, size_t documents)
      : JudgementTask(config, documents),
        id_("score-" + in.answer_id),
        model_(config.model_id),
        created_(in.now) {}

  void append_head(std::string& out) const override {
    JsonWriter json(out);
    json.begin_object().field("id", id_).field("object", "list").field("created", created_);
    json.field("model", model_).key("data").begin_array();
  }
  void append_item(std::string& out, size_t item) const override {
    if (item > 0) out += ',';
    JsonWriter json(out);
    json.begin_object().field("object", "score").field("index", static_cast<int64_t>(item));
    json.field("score", probability(item)).end_object();
  }
  void append_tail(std::string& out, int64_t prompt_tokens) const override {
    out += ']';
    append_usage(out, prompt_tokens);
  }

 private:
  const std::string id_, model_;
  const int64_t created_;
};

Result<PreparedBatch> prepare_ranking(const ServingContext& serving, MemoryBudget& budget,
                                      const PrepareInput& in, const RerankRequest& request) {
  WEIR_ASSIGN(ChosenAdapter adapter, choose_model(serving.config, request.model));
  WEIR_TRY(check_reranks(serving.config));
  RankingFacts facts{.form = request.form,
                     .raw_scores = request.raw_scores,
                     .id = "rerank-" + in.answer_id,
                     .model = serving.config.model_id,
                     .top_n = kDocumentsMax,
                     .documents = {}};
  if (request.top_n > 0) facts.top_n = static_cast<size_t>(request.top_n);
  size_t text_bytes = 0, longest = 0;
  if (request.return_documents)
    for (const std::string& text : request.documents) {
      append_json_string(facts.documents.emplace_back(), text);
      text_bytes += facts.documents.back().size();
      longest = std::max(longest, facts.documents.back().size());
    }
  const size_t documents = request.documents.size();
  const size_t results_bytes = documents * kResultBytes;
  const size_t bytes = text_bytes + results_bytes +
                       batch_text_bytes(text_bytes + results_bytes, kResultBytes + longest);
  WEIR_TRY(check_growing_memory(budget, request.document_field, bytes, "fewer documents"));
  PreparedBatch batch;
  batch.adapter = std::move(adapter);
  WEIR_ASSIGN(batch.whole, lease(budget, in.caller, bytes));
  auto task = std::make_unique<RankingTask>(serving.config, std::move(facts), documents);
  WEIR_TRY(add_prompts(serving, budget, in, request, std::move(task), batch));
  return batch;
}

}  // namespace

Result<PreparedBatch> prepare_rerank(const ServingContext& serving, MemoryBudget& budget,
                                     const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_rerank(in.body));
  return prepare_ranking(serving, budget, in, request);
}

Result<PreparedBatch> prepare_cohere_rerank(const ServingContext& serving, MemoryBudget& budget,
                                            const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_cohere_rerank(in.body));
  return prepare_ranking(serving, budget, in, request);
}

Result<PreparedBatch> prepare_score(const ServingContext& serving, MemoryBudget& budget,
                                    const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_score(in.body));
  WEIR_ASSIGN(ChosenAdapter adapter, choose_model(serving.config, request.model));
  WEIR_TRY(check_reranks(serving.config));
  const size_t documents = request.documents.size();
  const size_t text_bytes = documents * kResultBytes;
  PreparedBatch batch;
  batch.adapter = std::move(adapter);
  WEIR_ASSIGN(batch.whole,
              lease(budget, in.caller, text_bytes + batch_text_bytes(text_bytes, kResultBytes)));
  auto task = std::make_unique<ScoreTask>(serving.config, in, documents);
  WEIR_TRY(add_prompts(serving, budget, in, request, std::move(task), batch));
  return batch;
}

}  // namespace weir::api::vectors
