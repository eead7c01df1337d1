// Api: the OpenAI endpoints. HTTP requests come in, engine requests go out; each open answer is a
// Stream that is looked at on every wake of the loop.
//
// Threads: everything is called on the loop's thread, or before the loop runs. Slow work (JSON,
// template, tokenizer) goes to the pool and sees only what never changes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/endpoint_table.h"
#include "api/fim.h"
#include "api/generation_defaults.h"
#include "api/keys.h"
#include "api/rerank_config.h"
#include "card/embedding_settings.h"
#include "net/http.h"
#include "net/loop.h"
#include "sched/engine_handle.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weir::api {

class BreakerStore;
class GrammarStore;
struct OutputFormats;

// What the pages about the model show.
struct ModelFacts {
  int32_t context_trained = 0;  // Positions that the model was made for.
  int32_t hidden_size = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;      // Of the weights in memory.
  std::string formats{};  // "4-bit g32 79 %, 8-bit g32 21 %"
};

// What the composition root knows. Pointers are borrowed and outlive the Api.
struct ApiConfig {
  // --- The model.
  std::string model_id{};              // As /v1/models names it.
  std::vector<std::string> aliases{};  // Other names that requests may use.
  // Of model_id and aliases those that a person gave it (--alias): pages and errors show them.
  std::vector<std::string> given_names{};
  bool any_name = false;                 // Requests may call it as they like.
  int64_t created = 0;                   // Seconds since the epoch.
  int32_t context_max = 0;               // Positions of one sequence, prompt and output.
  int32_t vocab_size = 0;                // Rows of logits; ids beyond are refused.
  int32_t hidden_size = 0;               // Of an embedding.
  std::optional<InfillTokens> infill{};  // If the model can fill in the middle; the Api's own.
  card::EmbeddingSettings embedding{};   // The model's, or as --pooling says.
  RerankConfig rerank{};                 // The model's, or as --reranker says.
  ModelFacts facts{};
  GenerationDefaults defaults{};  // Merged with the command line; eos_ids included.
  const text::Tokenizer* tokenizer = nullptr;
  const text::ChatTemplate* chat_template = nullptr;      // Nullptr: /v1/chat/completions refuses.
  const text::ChatTemplate* tool_use_template = nullptr;  // For conversations with tools, if any.
  std::string chat_template_source{};                     // For /props.
  std::vector<std::string> config_overrides{};            // For /props: "KEY=VALUE" each.
  // `bos_token` and friends: variables of every template.
  std::vector<std::pair<std::string, std::string>> special_tokens{};

  // How the model writes calls and reasoning: names of formats, or what the template says.
  std::string tool_parser = "auto";        // Also "none".
  std::string reasoning_format = "auto";   // Also "none" and "deepseek".
  bool trust_request_template = false;     // Requests may bring a chat template.
  std::optional<bool> thinking{};          // Of requests that do not say; absent: the template's.
  int32_t reasoning_budget = -1;           // Of requests that do not say: tokens; -1: any number.
  std::string reasoning_budget_message{};  // What closes thinking that has used them up.

  // The Api's own; it fills these in.
  GrammarStore* grammars = nullptr;
  BreakerStore* breakers = nullptr;
  const OutputFormats* outputs = nullptr;

  // --- The machinery. What a request may hold is also bounded by engine->max_tokens_fit().
  sched::EngineHandle* engine = nullptr;
  net::Loop* loop = nullptr;

  // --- Policy.
  int32_t parallel = 0;             // Sequences that run at once, for pages.
  double queue_timeout_s = 0;       // A request that has waited so long is refused; 0: never.
  double request_timeout_s = 0;     // An answer that takes so long ends with an error; 0: never.
  std::vector<KeySpec> api_keys{};  // Empty: everybody may.
  std::vector<std::string> cors_origins{};  // "*": any. Empty: no CORS headers.
  // Tokens of a chat answer whose request names no limit; 0: what the context leaves.
  int32_t max_tokens_default = 0;
  int32_t prompt_max = 0;                  // Most tokens of a prompt; 0: what the context allows.
  int32_t preparing_max = 1024;            // Requests waiting to be prepared and being prepared,
  size_t preparing_bytes_max = 256 << 20;  // and their memory (memory_cost.h).
  size_t log_bytes_max = size_t{1} << 30;  // Memory for the token logs of all open requests.
  size_t responses_bytes_max = 64 << 20;   // Stored responses; 0: none are stored.
  size_t automata_bytes_max = 64 << 20;    // Compiled grammars, kept for the next request.
  size_t stream_pause_bytes = 64 << 10;    // As HttpLimits.
  uint64_t keep_alive_ms = 15'000;         // Silence after which a stream gets a comment.
  int32_t retry_after_s = 1;               // What 429 and 503 advise.
  std::string version{};                   // "0.1.0"
  std::string commit{};                    // What it was built from, as git describes it.
  std::string kernels{};                   // The instruction set in use: "avx512"
};

class Api {
 public:
  // Takes the loop's on_wake, and a timer of it.
  explicit Api(ApiConfig config);
  // REQUIRES: idle(), and the loop runs no more.
  ~Api();

  // For HttpServer: its handler, error_body, error_headers and wants_body.
  void handle(net::HttpRequest&& request, net::HttpResponderPtr responder);
  static std::pair<std::string, std::string> error_body(int status, std::string_view message,
                                                        const net::HttpRequest& request);
  net::HttpResponder::Headers error_headers(int status, const net::HttpRequest& request) const;
  bool wants_body(const net::HttpRequest& request) const;

  // Every endpoint, for the reference.
  static std::vector<EndpointDoc> endpoints();

  // Figures of the HTTP server for /metrics; optional. Borrowed.
  void set_http_stats(const net::HttpStats* stats);

  // Further figures for /metrics; optional. Called on the loop's thread.
  void set_more_metrics(std::function<void(std::string&)> render);

  // From now on these keys count. One that was there before, by its secret or else by the name that
  // it was given, keeps its counters and what was used of its limits; requests in flight are
  // answered, whatever becomes of their keys.
  void set_keys(std::vector<KeySpec> keys);

  // From now on /health and /ready say 503. What has been accepted is served, also what is still
  // arriving or being prepared: whoever drains takes no new connections.
  void begin_drain();

  // Cancels every open answer; each ends with an error event or response, also what is still being
  // prepared, and what comes from now on. For a shutdown that has waited long enough.
  void cancel_all();

  // Runs `call` on the thread that compiles grammars, when it has nothing to do.
  void in_background(std::function<void()> call);

  // True when no request is being prepared, computed or waited for: every Request is freed, and the
  // engine holds nothing of ours. Clients may still be reading. The engine must not be destroyed
  // before.
  bool idle() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::api
