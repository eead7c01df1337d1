// The endpoints: what there is, and which function answers it.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "api/anthropic/count_tokens.h"
#include "api/anthropic/message_error.h"
#include "api/anthropic/message_request.h"
#include "api/api_impl.h"
#include "api/llama/completion.h"
#include "api/llama/infill.h"
#include "api/llama/token_endpoints.h"
#include "api/models/model_orders.h"
#include "api/ollama/embed.h"
#include "api/ollama/error.h"
#include "api/ollama/model_pages.h"
#include "api/ollama/request.h"
#include "api/openai/request_fields.h"
#include "api/responses/responses.h"
#include "api/transcription/form_request.h"
#include "api/vectors/embeddings.h"
#include "api/vectors/rerank_request.h"

namespace weir::api {

struct Api::Impl::Table {
  using enum Access;
  static inline const std::array kRows = std::to_array<Row>({
      {{"POST", "/v1/chat/completions", "Answers a conversation.", kApi, &openai::chat_fields},
       &Impl::chat_completions},
      {{"POST", "/v1/completions", "Continues a text.", kApi, &openai::completion_fields},
       &Impl::completions},
      {{"POST", "/completion", "Continues a text (llama.cpp).", kApi,
        &llama::llama_completion_fields},
       &Impl::llama_completion},
      {{"POST", "/completions", "The same.", kApi, &llama::llama_completion_fields},
       &Impl::llama_completion},
      {{"POST", "/infill", "Writes what stands between two texts (llama.cpp).", kApi,
        &llama::infill_fields},
       &Impl::infill},
      {{"POST", "/v1/responses", "Answers a conversation in items, and keeps it.", kApi,
        &responses::responses_fields},
       &Impl::responses},
      {{"POST", "/v1/responses/input_tokens", "The tokens that such a prompt has.", kApi,
        &responses::responses_fields},
       &Impl::response_tokens},
      {{"GET", "/v1/responses/{id}",
        "A stored response; with ?stream=true its events, those after the number starting_after.",
        kApi},
       &Impl::response},
      {{"POST", "/v1/responses/{id}/cancel",
        "A 400, or a 404: only what runs in the background is cancelled so, and nothing does.",
        kApi},
       &Impl::cancel_response},
      {{"DELETE", "/v1/responses/{id}", "Forgets a stored response.", kApi},
       &Impl::delete_response},
      {{"GET", "/v1/responses/{id}/input_items", "The input of a stored response.", kApi},
       &Impl::response_input},
      {{"POST", "/v1/messages", "Answers a conversation (Anthropic).", kApi,
        &anthropic::message_fields},
       &Impl::messages},
      {{"POST", "/v1/messages/count_tokens", "The tokens that such a prompt has.", kApi,
        &anthropic::count_fields},
       &Impl::count_tokens},
      {{"POST", "/v1/embeddings", "Vectors for texts.", kApi, &vectors::embedding_fields},
       &Impl::embeddings},
      {{"POST", "/v1/audio/transcriptions", "What is said in a recording, for speech models.", kApi,
        &transcription::transcription_fields, /*form=*/true},
       &Impl::transcriptions},
      {{"POST", "/v1/audio/translations", "The same, in English.", kApi,
        &transcription::translation_fields, /*form=*/true},
       &Impl::translations},
      {{"POST", "/v1/audio/speech", "A 404: no model that is served speaks.", kApi},
       &Impl::refuse_speech},
      {{"POST", "/v1/rerank", "Orders documents by how well they fit a query, for rerankers.", kApi,
        &vectors::rerank_fields},
       &Impl::rerank},
      {{"POST", "/v2/rerank", "The same, in Cohere's words.", kApi, &vectors::cohere_rerank_fields},
       &Impl::cohere_rerank},
      {{"POST", "/v1/score", "How well texts fit one another, in their order (vLLM).", kApi,
        &vectors::score_fields},
       &Impl::score},
      {{"GET", "/v1/models",
        "The models, and whether they are loaded; in Anthropic's form if the request has "
        "anthropic-version.",
        kAnyKey},
       &Impl::models},
      {{"GET", "/v1/models/{id}", "A model, by its id or an alias; in Anthropic's form likewise.",
        kAnyKey},
       &Impl::model},
      {{"POST", "/v1/load_lora_adapter",
        "Loads an adapter (LoRA) from below --lora-dir, or from the hub's cache: lora_name, "
        "lora_path (vLLM).",
        kAdmin, &load_adapter_fields},
       &Impl::load_adapter},
      {{"POST", "/v1/unload_lora_adapter",
        "Forgets an adapter: lora_name (vLLM). Requests that have it are answered.", kAdmin,
        &unload_adapter_fields},
       &Impl::unload_adapter},
      {{"GET", "/lora-adapters",
        "The adapters, and by what scale each counts where a request asks for none (llama.cpp).",
        kAnyKey},
       &Impl::adapter_scales},
      {{"POST", "/lora-adapters",
        "Sets these scales: [{id, scale}], one at most that is not 0 (llama.cpp).", kAdmin},
       &Impl::set_adapter_scales},
      {{"GET", "/models/search",
        "Models of the hub for the words in ?q=, and whether they run here; without, the "
        "catalogue.",
        kAdmin},
       &Impl::search_models},
      {{"POST", "/models",
        "Begins to fetch a model of the hub into the cache; /models/sse tells how far it is.",
        kAdmin, &pull_fields},
       &Impl::pull_model},
      {{"DELETE", "/models", "Deletes the model that ?model= names in the hub's cache.", kAdmin},
       &Impl::delete_model},
      {{"POST", "/models/load", "Loads a model, and answers when it is loaded.", kAdmin,
        &load_fields},
       &Impl::load_model},
      {{"POST", "/models/unload", "Unloads a model that nobody uses, or ends its load.", kAdmin,
        &unload_fields},
       &Impl::unload_model},
      {{"GET", "/models/sse", "Events of the models' states: all at first, then each change.",
        kAnyKey},
       &Impl::model_events},
      {{"POST", "/api/chat", "Answers a conversation (Ollama).", kApi, &ollama::chat_fields},
       &Impl::ollama_chat},
      {{"POST", "/api/generate", "Answers or continues a text (Ollama).", kApi,
        &ollama::generate_fields},
       &Impl::ollama_generate},
      {{"POST", "/api/embed", "Vectors for texts, of length 1 (Ollama).", kApi,
        &ollama::embed_fields},
       &Impl::ollama_embed},
      {{"POST", "/api/embeddings", "A vector for a text (Ollama, older).", kApi,
        &ollama::embeddings_fields},
       &Impl::ollama_embeddings},
      {{"GET", "/api/version", "The version of Ollama whose API this is.", kOpen},
       &Impl::ollama_version},
      {{"GET", "/api/tags", "The models that requests may name (Ollama).", kAnyKey},
       &Impl::ollama_tags},
      {{"GET", "/api/ps", "Those of them that are loaded (Ollama).", kAnyKey}, &Impl::ollama_ps},
      {{"POST", "/api/show", "What a model is and can do (Ollama).", kApi, &ollama::show_fields},
       &Impl::ollama_show},
      {{"POST", "/api/pull", "Fetches a model of the hub into the cache (Ollama).", kAdmin,
        &ollama::pull_fields},
       &Impl::ollama_pull},
      {{"DELETE", "/api/delete", "Deletes a model in the hub's cache (Ollama).", kAdmin,
        &ollama::delete_fields},
       &Impl::ollama_delete},
      {{"POST", "/api/create", "A 501, as the four that follow.", kAdmin}, &Impl::ollama_refuse},
      {{"POST", "/api/copy", "A 501.", kAdmin}, &Impl::ollama_refuse},
      {{"POST", "/api/push", "A 501.", kAdmin}, &Impl::ollama_refuse},
      {{"POST", "/api/blobs/{id}", "A 501.", kAdmin}, &Impl::ollama_refuse},
      {{"POST", "/api/me", "A 501.", kAdmin}, &Impl::ollama_refuse},
      {{"POST", "/tokenize", "Text or messages to tokens.", kApi, &llama::tokenize_fields},
       &Impl::tokenize_text},
      {{"POST", "/apply-template", "Messages as the text that the model reads (llama.cpp).", kApi,
        &openai::chat_fields},
       &Impl::apply_template},
      {{"POST", "/detokenize", "Tokens to text.", kApi, &llama::detokenize_fields},
       &Impl::detokenize_ids},
      {{"GET", "/tokenizer_info",
        "The special tokens and the chat template, for evaluation harnesses (vLLM).", kAnyKey},
       &Impl::tokenizer_info},
      {{"GET", "/", "What the server is, for people.", kOpen}, &Impl::front_page},
      {{"GET", "/health",
        "200 unless the server is loading or shutting down, or its model's files were changed.",
        kOpen},
       &Impl::health},
      {{"GET", "/v1/health", "The same.", kOpen}, &Impl::health},
      {{"GET", "/ready", "200 while requests are accepted.", kOpen}, &Impl::health},
      {{"GET", "/props", "The server's properties (llama.cpp).", kAnyKey}, &Impl::props},
      {{"GET", "/slots", "Open requests: running, then waiting with queue_position (llama.cpp).",
        kMonitor},
       &Impl::slots},
      {{"GET", "/metrics", "Figures in Prometheus text format.", kMonitor}, &Impl::metrics},
      {{"GET", "/dashboard",
        "Figures of ten seconds; a request that accepts text/event-stream gets them as events.",
        kMonitor},
       &Impl::dashboard},
      {{"GET", "/version", "The server's version, and the commit that it was built from.", kAnyKey},
       &Impl::version},
      {{"GET", "/openapi.json", "This reference, as OpenAPI 3.1.", kAnyKey}, &Impl::openapi},
  });
};

// The files of the web page are no part of the API, and not in its reference.
const Api::Impl::Row& Api::Impl::ui_row() {
  static const Row kRow = {{"GET", "/ui/{file}", "", Access::kOpen}, &Impl::ui_file};
  return kRow;
}

std::span<const Api::Impl::Row> Api::Impl::table() { return Table::kRows; }

void Api::Impl::add_route(std::string_view path, const Row& row) {
  // What asks for more than to look, and for no scope, has forgotten to.
  CHECK(row.doc.method == "GET" || row.doc.access == Access::kApi ||
        row.doc.access == Access::kAdmin);
  const size_t number =
      routes.add(row.doc.method, path,
                 [this, &row](net::HttpRequest&& request, const net::RouteParams& params,
                              net::HttpResponderPtr responder) {
                   const ExchangePtr exchange = open(std::move(request), std::move(responder));
                   if (admit(*exchange, row.doc)) (this->*row.action)(exchange, params);
                 });
  CHECK(number == routed.size());
  routed.push_back(&row);
}

// Clients whose base URL lacks the version ask without it. A row of its own goes first:
// /completions is llama-server's.
void Api::Impl::add_routes() {
  constexpr std::string_view kVersion = "/v1";
  if (config.ui) add_route(ui_row().doc.path, ui_row());
  for (const Row& row : table()) {
    if (!config.ollama && ollama::is_ollama_path(row.doc.path)) continue;
    add_route(row.doc.path, row);
    if (!row.doc.path.starts_with("/v1/")) continue;
    const std::string_view bare = row.doc.path.substr(kVersion.size());
    const bool taken = std::ranges::any_of(table(), [&](const Row& other) {
      return other.doc.path == bare && other.doc.method == row.doc.method;
    });
    if (!taken) add_route(bare, row);
  }
}

const ErrorShape& error_shape_of(const net::HttpRequest& request) {
  if (ollama::is_ollama_path(request.path)) return ollama::ollama_errors();
  return anthropic::speaks_anthropic(request) ? anthropic::message_errors() : openai_errors();
}

std::vector<EndpointDoc> Api::endpoints() {
  std::vector<EndpointDoc> docs;
  for (const Impl::Row& row : Impl::table()) docs.push_back(row.doc);
  return docs;
}

}  // namespace weir::api
