#include "api/rerank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "api/memory_cost.h"
#include "api/prompt_tokens.h"
#include "api/rerank_request.h"
#include "base/json.h"

namespace weir::api {

namespace {

// What a model is told whose chat template does not say it itself (RerankConfig::roles), and the
// task where a request names none.
constexpr std::string_view kJudge =
    "You are given an instruction, a query and a document. Does the document meet what the "
    "instruction and the query ask for? Answer \"yes\" or \"no\" and nothing else.";
constexpr std::string_view kTask = "Find the passages that answer the query.";

// Where a text that is cut meets the template its tokens may be others: so many fewer are taken.
constexpr int64_t kSeamTokens = 4;

// A result's JSON beside its document.
constexpr size_t kResultBytes = 96;

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
std::string_view default_instruction(const EmbeddingConfig& config) {
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
Result<std::vector<int32_t>> fitting_prompt(const ApiConfig& config, const PrepareInput& in,
                                            const RerankRequest& request, size_t index,
                                            const std::string& field, int64_t tokens_max) {
  std::string document = request.documents[index];
  const bool cuts = request.prompt_tokens_max.has_value();
  const Truncation any_length{cuts ? request.prompt_tokens_max : std::nullopt, false};
  WEIR_TRY(check_text_length(config, field, uncut_tokens_max(any_length, in.tokens_max), document,
                             {.parse_special = false}));
  if (request.document_tokens_max)
    document = first_tokens(config, document, *request.document_tokens_max);
  GenerateRequest chat;
  chat.enable_thinking = false;  // The next token is the answer.
  const auto encode = [&]() -> Result<std::vector<int32_t>> {
    chat.messages = messages_of(config, request, request.query_of(index), document);
    WEIR_ASSIGN(const std::string text, render_chat(config, chat, in.now));
    return tokenise(config, field, uncut_tokens_max(any_length, in.tokens_max), text,
                    {.add_special = false, .parse_special = true});
  };
  WEIR_ASSIGN(std::vector<int32_t> prompt, encode());
  if (!cuts || std::ssize(prompt) <= tokens_max) return prompt;
  const auto whole = std::ssize(config.tokenizer->encode(document, {.parse_special = false}));
  document =
      first_tokens(config, document, whole - (std::ssize(prompt) - tokens_max) - kSeamTokens);
  return encode();
}

Result<std::vector<int32_t>> prompt_of(const ApiConfig& config, const PrepareInput& in,
                                       const RerankRequest& request, size_t document) {
  const std::string field = request.document_field + "[" + std::to_string(document) + "]";
  const int64_t room = in.tokens_max - 1;
  const int64_t asked = request.prompt_tokens_max.value_or(-1);
  WEIR_ASSIGN(std::vector<int32_t> prompt,
              fitting_prompt(config, in, request, document, field, asked > 0 ? asked : room));
  if (prompt.empty()) return out_of_range(field, "expected at least one token, found none");
  WEIR_TRY(check_prompt_length(config, field, std::ssize(prompt), 1, in.tokens_max));
  return prompt;
}

// Memory is taken as the prompts appear: each may be as long as the context.
Result<std::vector<OwnedRequest>> judgements(const ApiConfig& config, MemoryBudget& budget,
                                             const PrepareInput& in, const RerankRequest& request) {
  std::vector<OwnedRequest> requests;
  size_t bytes = 0;
  for (size_t i = 0; i < request.documents.size(); ++i) {
    WEIR_ASSIGN(std::vector<int32_t> prompt, prompt_of(config, in, request, i));
    sample::SamplingParams params;
    params.temperature = 0;
    params.reported = {config.rerank.yes, config.rerank.no};
    params.top_logprobs = static_cast<int32_t>(params.reported.size());
    const size_t request_size = request_bytes(prompt.size(), 1, params.top_logprobs);
    WEIR_TRY(check_memory(budget, request.document_field, bytes += request_size, "fewer texts"));
    OwnedRequest owned;
    WEIR_ASSIGN(owned.lease, lease(budget, in.caller, request_size));
    owned.request = std::make_unique<sched::Request>(std::move(prompt), std::move(params),
                                                     /*max_tokens=*/1, /*logprobs=*/true);
    owned.request->arrived = in.arrived;
    owned.request->priority = in.priority_min.value_or(0);
    owned.request->caller = in.caller;
    requests.push_back(std::move(owned));
  }
  return requests;
}

// By document: e^yes / (e^yes + e^no), or the difference of the logits.
Result<std::vector<double>> scores_of(std::span<OwnedRequest> requests, bool raw) {
  std::vector<double> scores;
  for (const OwnedRequest& owned : requests) {
    const TokenLog& log = owned.request->log;
    if (log.size() != 1) return fail(ErrorCode::kIo, "The model gave no judgement.");
    const auto judged = log.top(0);
    const double odds = double{judged[1].logprob} - double{judged[0].logprob};
    if (std::isnan(odds)) return fail(ErrorCode::kIo, "The model gave logits that are no numbers.");
    scores.push_back(raw ? -odds : 1 / (1 + std::exp(odds)));
  }
  return scores;
}

void write_usage(JsonWriter& json, int64_t prompt_tokens) {
  json.key("usage").begin_object().field("prompt_tokens", prompt_tokens);
  json.field("total_tokens", prompt_tokens).end_object();
}

// What an answer says of its request.
struct RankingFacts {
  RerankForm form = RerankForm::kList;
  bool raw_scores = false;
  std::string id, model;
  size_t top_n = 0;
  std::vector<std::string> documents;  // The JSON of each text, or none of them.
};

void write_result(JsonWriter& json, const RankingFacts& facts, size_t index, double score) {
  const bool tei = facts.form == RerankForm::kTei;
  json.begin_object().field("index", static_cast<int64_t>(index));
  json.field(tei ? "score" : "relevance_score", score);
  if (!facts.documents.empty()) {
    if (tei)
      json.key("text").raw(facts.documents[index]);
    else
      json.key("document").begin_object().key("text").raw(facts.documents[index]).end_object();
  }
  json.end_object();
}

void write_results(JsonWriter& json, const RankingFacts& facts, std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
  order.resize(std::min(order.size(), facts.top_n));
  json.begin_array();
  for (const size_t i : order) write_result(json, facts, i, scores[i]);
  json.end_array();
}

std::string rerank_json(const RankingFacts& facts, std::span<const double> scores,
                        int64_t prompt_tokens) {
  std::string out;
  JsonWriter json(out);
  if (facts.form == RerankForm::kTei) {
    write_results(json, facts, scores);
    return out;
  }
  json.begin_object().field("id", facts.id);
  if (facts.form == RerankForm::kList) json.field("object", "list").field("model", facts.model);
  json.key("results");
  write_results(json, facts, scores);
  if (facts.form == RerankForm::kList)
    write_usage(json, prompt_tokens);
  else
    json.key("meta").raw(R"({"api_version":{"version":"2","is_experimental":false},)"
                         R"("billed_units":{"search_units":1}})");
  json.end_object();
  return out;
}

std::string score_json(const std::string& id, int64_t created, const std::string& model,
                       std::span<const double> scores, int64_t prompt_tokens) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("id", id).field("object", "list").field("created", created);
  json.field("model", model);
  json.key("data").begin_array();
  for (size_t i = 0; i < scores.size(); ++i)
    json.begin_object()
        .field("object", "score")
        .field("index", static_cast<int64_t>(i))
        .field("score", scores[i])
        .end_object();
  json.end_array();
  write_usage(json, prompt_tokens);
  json.end_object();
  return out;
}

Result<PreparedBatch> prepare_ranking(const ApiConfig& config, MemoryBudget& budget,
                                      const PrepareInput& in, const RerankRequest& request) {
  WEIR_TRY(check_model(config, request.model));
  WEIR_TRY(check_reranks(config));
  RankingFacts facts{.form = request.form,
                     .raw_scores = request.raw_scores,
                     .id = "rerank-" + in.answer_id,
                     .model = config.model_id,
                     .top_n = kDocumentsMax,
                     .documents = {}};
  if (request.top_n > 0) facts.top_n = static_cast<size_t>(request.top_n);
  size_t text_bytes = 0;
  if (request.return_documents)
    for (const std::string& text : request.documents) {
      append_json_string(facts.documents.emplace_back(), text);
      text_bytes += facts.documents.back().size();
    }
  // The texts, the answer that shows them, and its copy that is sent.
  text_bytes = 3 * text_bytes + 2 * kResultBytes * request.documents.size();
  WEIR_TRY(check_memory(budget, request.document_field, text_bytes, "fewer documents"));
  PreparedBatch batch;
  batch.ignored = request.ignored;
  WEIR_ASSIGN(batch.whole, lease(budget, in.caller, text_bytes));
  WEIR_ASSIGN(batch.requests, judgements(config, budget, in, request));
  batch.write = [facts = std::move(facts)](std::span<OwnedRequest> requests,
                                           int64_t prompt_tokens) -> Result<std::string> {
    WEIR_ASSIGN(const std::vector<double> scores, scores_of(requests, facts.raw_scores));
    return rerank_json(facts, scores, prompt_tokens);
  };
  return batch;
}

}  // namespace

Result<PreparedBatch> prepare_rerank(const ApiConfig& config, MemoryBudget& budget,
                                     const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_rerank(in.body));
  return prepare_ranking(config, budget, in, request);
}

Result<PreparedBatch> prepare_cohere_rerank(const ApiConfig& config, MemoryBudget& budget,
                                            const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_cohere_rerank(in.body));
  return prepare_ranking(config, budget, in, request);
}

Result<PreparedBatch> prepare_score(const ApiConfig& config, MemoryBudget& budget,
                                    const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_score(in.body));
  WEIR_TRY(check_model(config, request.model));
  WEIR_TRY(check_reranks(config));
  PreparedBatch batch;
  batch.ignored = request.ignored;
  WEIR_ASSIGN(batch.whole, lease(budget, in.caller, 2 * kResultBytes * request.documents.size()));
  WEIR_ASSIGN(batch.requests, judgements(config, budget, in, request));
  batch.write = [id = "score-" + in.answer_id, created = in.now, model = config.model_id](
                    std::span<OwnedRequest> requests,
                    int64_t prompt_tokens) -> Result<std::string> {
    WEIR_ASSIGN(const std::vector<double> scores, scores_of(requests, /*raw=*/false));
    return score_json(id, created, model, scores, prompt_tokens);
  };
  return batch;
}

}  // namespace weir::api
