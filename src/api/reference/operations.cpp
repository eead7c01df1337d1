// A row for each endpoint of api_table.cpp: its name, and the schemas of what goes in and comes
// out.
#include <algorithm>
#include <array>

#include "api/reference/reference.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api::reference {

namespace {

constexpr std::string_view kListQuery = R"([
  {"name": "limit", "in": "query", "description": "Most items of the list.",
   "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
  {"name": "order", "in": "query", "description": "By age.",
   "schema": {"type": "string", "enum": ["asc", "desc"], "default": "desc"}},
  {"name": "after", "in": "query", "description": "The id of the item before the first.",
   "schema": {"type": "string"}}
])";

constexpr std::string_view kReplayQuery = R"([
  {"name": "stream", "in": "query", "description": "true: as its events, as text/event-stream.",
   "schema": {"type": "boolean", "default": false}},
  {"name": "starting_after", "in": "query",
   "description": "The sequence_number of the event before the first.",
   "schema": {"type": "integer"}}
])";

constexpr std::string_view kModelsQuery = R"([
  {"name": "q", "in": "query", "description": "Words; none: the built-in catalogue.",
   "schema": {"type": "string"}},
  {"name": "sort", "in": "query", "description": "Which come first, from the most.",
   "schema": {"type": "string", "default": "downloads",
     "enum": ["downloads", "likes", "lastModified", "createdAt", "trendingScore"]}},
  {"name": "filter", "in": "query", "description": "A tag of the hub, such as mlx or gguf.",
   "schema": {"type": "string"}},
  {"name": "cursor", "in": "query", "description": "The next of the page before.",
   "schema": {"type": "string"}}
])";

constexpr std::string_view kReloadQuery = R"([
  {"name": "reload", "in": "query", "description": "1: looks again which there are.",
   "schema": {"type": "integer", "enum": [1]}}
])";

constexpr std::string_view kDeletedQuery = R"([
  {"name": "model", "in": "query", "required": true, "description": "As the hub names it.",
   "schema": {"type": "string"}}
])";

constexpr std::string_view kSlotsQuery = R"([
  {"name": "fail_on_no_slot", "in": "query", "description": "1: 503 while no slot is free.",
   "schema": {"type": "integer", "enum": [0, 1]}}
])";

constexpr auto kOperations = std::to_array<Operation>({
    {"POST", "/v1/chat/completions", "createChatCompletion", "Chat", "ChatCompletionRequest",
     "ChatCompletion", "ChatCompletionChunk"},
    {"POST", "/v1/completions", "createCompletion", "Completions", "CompletionRequest",
     "Completion", "CompletionChunk"},
    {"POST", "/completion", "completeText", "Completions", "TextCompletionRequest", "LlamaAnswers",
     "LlamaEvent"},
    {"POST", "/completions", "completeTexts", "Completions", "TextCompletionRequest",
     "LlamaAnswers", "LlamaEvent"},
    {"POST", "/infill", "infill", "Completions", "InfillRequest", "LlamaAnswer", "LlamaEvent"},

    {"POST", "/v1/responses", "createResponse", "Responses", "ResponseRequest", "Response",
     "ResponseStreamEvent"},
    {"POST", "/v1/responses/input_tokens", "countResponseTokens", "Responses", "ResponseRequest",
     "ResponseTokenCount"},
    {"GET", "/v1/responses/{id}", "getResponse", "Responses", "", "Response", "", kReplayQuery},
    {"POST", "/v1/responses/{id}/cancel", "cancelResponse", "Responses", "", "Response", "", "",
     /*refuses=*/true},
    {"DELETE", "/v1/responses/{id}", "deleteResponse", "Responses", "", "DeletedResponse"},
    {"GET", "/v1/responses/{id}/input_items", "listInputItems", "Responses", "", "InputItemList",
     "", kListQuery},

    {"POST", "/v1/messages", "createMessage", "Messages", "MessageRequest", "Message",
     "MessageStreamEvent"},
    {"POST", "/v1/messages/count_tokens", "countMessageTokens", "Messages",
     "CountMessageTokensRequest", "MessageTokenCount"},

    {"POST", "/v1/embeddings", "createEmbedding", "Embeddings", "EmbeddingRequest",
     "EmbeddingList"},
    {"POST", "/v1/audio/transcriptions", "createTranscription", "Audio", "TranscriptionRequest",
     "Transcript", "TranscriptEvent"},
    {"POST", "/v1/audio/translations", "createTranslation", "Audio", "TranslationRequest",
     "Transcript"},
    {"POST", "/v1/audio/speech", "createSpeech", "Audio", "", "", "", "", /*refuses=*/true},
    {"POST", "/v1/rerank", "rerank", "Ranking", "RerankRequest", "RerankAnswer"},
    {"POST", "/v2/rerank", "rerankVersion2", "Ranking", "CohereRerankRequest",
     "CohereRerankAnswer"},
    {"POST", "/v1/score", "score", "Ranking", "ScoreRequest", "ScoreList"},

    {"GET", "/v1/models", "listModels", "Models", "", "ModelList", "", kReloadQuery},
    {"GET", "/v1/models/{id}", "getModel", "Models", "", "Model"},
    {"POST", "/v1/load_lora_adapter", "loadAdapter", "Models", "LoadAdapterRequest"},
    {"POST", "/v1/unload_lora_adapter", "unloadAdapter", "Models", "UnloadAdapterRequest"},
    {"GET", "/lora-adapters", "listAdapters", "Models", "", "AdapterList"},
    {"POST", "/lora-adapters", "setAdapterScales", "Models", "", "Success"},
    {"GET", "/models/search", "searchModels", "Models", "", "FoundModels", "", kModelsQuery},
    {"POST", "/models", "pullModel", "Models", "PullModelRequest", "Success"},
    {"DELETE", "/models", "deleteModel", "Models", "", "Success", "", kDeletedQuery},
    {"POST", "/models/load", "loadModel", "Models", "LoadModelRequest", "Success"},
    {"POST", "/models/unload", "unloadModel", "Models", "UnloadModelRequest", "Success"},
    {"GET", "/models/sse", "streamModelEvents", "Models"},

    {"POST", "/api/chat", "ollamaChat", "Ollama", "OllamaChatRequest", "OllamaChatAnswer",
     "OllamaChatPart"},
    {"POST", "/api/generate", "ollamaGenerate", "Ollama", "OllamaGenerateRequest",
     "OllamaGenerateAnswer", "OllamaGeneratePart"},
    {"POST", "/api/embed", "ollamaEmbed", "Ollama", "OllamaEmbedRequest", "OllamaVectors"},
    {"POST", "/api/embeddings", "ollamaEmbeddings", "Ollama", "OllamaEmbeddingsRequest",
     "OllamaVector"},
    {"GET", "/api/version", "ollamaVersion", "Ollama", "", "OllamaVersion"},
    {"GET", "/api/tags", "ollamaTags", "Ollama", "", "OllamaModels"},
    {"GET", "/api/ps", "ollamaProcesses", "Ollama", "", "OllamaLoadedModels"},
    {"POST", "/api/show", "ollamaShow", "Ollama", "OllamaShowRequest", "OllamaModelDetails"},
    {"POST", "/api/pull", "ollamaPull", "Ollama", "OllamaPullRequest", "OllamaPullStatus",
     "OllamaPullStatus"},
    {"DELETE", "/api/delete", "ollamaDelete", "Ollama", "OllamaDeleteRequest"},
    {"POST", "/api/create", "ollamaCreate", "Ollama", "", "", "", "", /*refuses=*/true},
    {"POST", "/api/copy", "ollamaCopy", "Ollama", "", "", "", "", /*refuses=*/true},
    {"POST", "/api/push", "ollamaPush", "Ollama", "", "", "", "", /*refuses=*/true},
    {"POST", "/api/blobs/{id}", "ollamaBlob", "Ollama", "", "", "", "", /*refuses=*/true},
    {"POST", "/api/me", "ollamaAccount", "Ollama", "", "", "", "", /*refuses=*/true},

    {"POST", "/tokenize", "tokenize", "Tokens", "TokenizeRequest", "TokenList"},
    {"POST", "/apply-template", "applyTemplate", "Tokens", "ChatCompletionRequest",
     "AppliedTemplate"},
    {"GET", "/tokenizer_info", "getTokenizerInfo", "Tokens", "", "TokenizerInfo"},
    {"POST", "/detokenize", "detokenize", "Tokens", "DetokenizeRequest", "DetokenizedText"},

    {"GET", "/", "getFrontPage", "Server"},
    {"GET", "/health", "getHealth", "Server", "", "Health"},
    {"GET", "/v1/health", "getHealthVersioned", "Server", "", "Health"},
    {"GET", "/ready", "getReady", "Server", "", "Health"},
    {"GET", "/props", "getProps", "Server", "", "Props"},
    {"GET", "/slots", "listSlots", "Server", "", "SlotList", "", kSlotsQuery},
    {"GET", "/metrics", "getMetrics", "Server"},
    {"GET", "/dashboard", "getDashboard", "Server", "", "DashboardFigures"},
    {"GET", "/version", "getVersion", "Server", "", "Version"},
    {"GET", "/openapi.json", "getOpenApi", "Server", "", "OpenApi"},
});

}  // namespace

std::span<const Operation> operations() { return kOperations; }

bool streams_lines(const Operation& operation) { return operation.path.starts_with("/api/"); }

const Operation* find_operation(std::string_view method, std::string_view path) {
  const auto found = std::ranges::find_if(kOperations, [&](const Operation& operation) {
    return operation.method == method && operation.path == path;
  });
  return found == kOperations.end() ? nullptr : &*found;
}

std::vector<const Example*> examples_of(const Operation& operation) {
  std::vector<const Example*> found;
  for (const auto examples : {chat_examples(), llama_examples(), conversation_examples(),
                              vector_examples(), sound_examples(), ollama_examples(),
                              server_examples()})
    for (const Example& example : examples)
      if (example.method == operation.method && example.path == operation.path)
        found.push_back(&example);
  return found;
}

// As the server tells: by the request's field.
bool asks_for_stream(const Example& example) {
  if (example.request.empty()) return false;
  const Result<JsonDoc> doc = JsonDoc::parse(example.request);
  CHECK(doc.has_value());
  bool stream = false;
  return doc->root()["stream"].get(stream) == simdjson::SUCCESS && stream;
}

}  // namespace weir::api::reference
