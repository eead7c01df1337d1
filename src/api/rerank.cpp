#include "api/rerank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "api/memory_cost.h"
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
std::string messages_of(const ApiConfig& config, const RerankRequest& request, size_t document) {
  std::string messages;
  JsonWriter json(messages);
  json.begin_array();
  const std::string& query = request.query_of(document);
  if (config.rerank.roles) {
    const std::string instruction =
        request.instruction.value_or(std::string(default_instruction(config.embedding)));
    if (!instruction.empty()) write_message(json, "system", instruction);
    write_message(json, "query", query);
    write_message(json, "document", request.documents[document]);
  } else {
    write_message(json, "system", kJudge);
    write_message(json, "user",
                  "<Instruct>: " + request.instruction.value_or(std::string(kTask)) +
                      "\n<Query>: " + query + "\n<Document>: " + request.documents[document]);
  }
  json.end_array();
  return messages;
}

Result<std::vector<int32_t>> prompt_of(const ApiConfig& config, const PrepareInput& in,
                                       const RerankRequest& request, size_t document) {
  GenerateRequest chat;
  chat.messages = messages_of(config, request, document);
  chat.enable_thinking = false;  // The next token is the answer.
  WEIR_ASSIGN(const std::string text, render_chat(config, chat, in.now));
  const std::string field = request.document_field + "[" + std::to_string(document) + "]";
  WEIR_ASSIGN(std::vector<int32_t> prompt, tokenise(config, field, in.tokens_max, text,
                                                    {.add_special = false, .parse_special = true}));
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
    WEIR_ASSIGN(owned.lease, lease(budget, request_size));
    owned.request = std::make_unique<sched::Request>(std::move(prompt), std::move(params),
                                                     /*max_tokens=*/1, /*logprobs=*/true);
    owned.request->arrived = in.arrived;
    owned.request->priority = in.priority_min.value_or(0);
    requests.push_back(std::move(owned));
  }
  return requests;
}

// By document: e^yes / (e^yes + e^no).
Result<std::vector<double>> scores_of(std::span<OwnedRequest> requests) {
  std::vector<double> scores;
  for (const OwnedRequest& owned : requests) {
    const TokenLog& log = owned.request->log;
    if (log.size() != 1) return fail(ErrorCode::kIo, "The model gave no judgement.");
    const auto judged = log.top(0);
    const double odds = double{judged[1].logprob} - double{judged[0].logprob};
    if (std::isnan(odds)) return fail(ErrorCode::kIo, "The model gave logits that are no numbers.");
    scores.push_back(1 / (1 + std::exp(odds)));
  }
  return scores;
}

void write_usage(JsonWriter& json, int64_t prompt_tokens) {
  json.key("usage").begin_object().field("prompt_tokens", prompt_tokens);
  json.field("total_tokens", prompt_tokens).end_object();
}

// `documents`: the JSON of each text, or none of them.
std::string rerank_json(const std::string& model, std::span<const double> scores,
                        const std::vector<std::string>& documents, size_t top_n,
                        int64_t prompt_tokens) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
  order.resize(std::min(order.size(), top_n));
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("object", "list").field("model", model);
  json.key("results").begin_array();
  for (const size_t i : order) {
    json.begin_object().field("index", static_cast<int64_t>(i));
    json.field("relevance_score", scores[i]);
    if (!documents.empty())
      json.key("document").begin_object().key("text").raw(documents[i]).end_object();
    json.end_object();
  }
  json.end_array();
  write_usage(json, prompt_tokens);
  json.end_object();
  return out;
}

std::string score_json(const std::string& model, std::span<const double> scores,
                       int64_t prompt_tokens) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("object", "list").field("model", model);
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

}  // namespace

Result<PreparedBatch> prepare_rerank(const ApiConfig& config, MemoryBudget& budget,
                                     const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_rerank(in.body));
  WEIR_TRY(check_model(config, request.model));
  WEIR_TRY(check_reranks(config));
  std::vector<std::string> documents;
  size_t text_bytes = 0;
  if (request.return_documents)
    for (const std::string& text : request.documents) {
      append_json_string(documents.emplace_back(), text);
      text_bytes += documents.back().size();
    }
  // The texts, the answer that shows them, and its copy that is sent.
  text_bytes = 3 * text_bytes + 2 * kResultBytes * request.documents.size();
  WEIR_TRY(check_memory(budget, "documents", text_bytes, "fewer documents"));
  PreparedBatch batch;
  batch.ignored = request.ignored;
  WEIR_ASSIGN(batch.whole, lease(budget, text_bytes));
  WEIR_ASSIGN(batch.requests, judgements(config, budget, in, request));
  const size_t top_n = request.top_n > 0 ? static_cast<size_t>(request.top_n) : kDocumentsMax;
  batch.write = [model = config.model_id, top_n, documents = std::move(documents)](
                    std::span<OwnedRequest> requests,
                    int64_t prompt_tokens) -> Result<std::string> {
    WEIR_ASSIGN(const std::vector<double> scores, scores_of(requests));
    return rerank_json(model, scores, documents, top_n, prompt_tokens);
  };
  return batch;
}

Result<PreparedBatch> prepare_score(const ApiConfig& config, MemoryBudget& budget,
                                    const PrepareInput& in) {
  WEIR_ASSIGN(const RerankRequest request, parse_score(in.body));
  WEIR_TRY(check_model(config, request.model));
  WEIR_TRY(check_reranks(config));
  PreparedBatch batch;
  batch.ignored = request.ignored;
  WEIR_ASSIGN(batch.whole, lease(budget, 2 * kResultBytes * request.documents.size()));
  WEIR_ASSIGN(batch.requests, judgements(config, budget, in, request));
  batch.write = [model = config.model_id](std::span<OwnedRequest> requests,
                                          int64_t prompt_tokens) -> Result<std::string> {
    WEIR_ASSIGN(const std::vector<double> scores, scores_of(requests));
    return score_json(model, scores, prompt_tokens);
  };
  return batch;
}

}  // namespace weir::api
