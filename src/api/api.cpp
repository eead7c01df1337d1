#include "api/api.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <utility>

#include "api/anthropic/count_tokens.h"
#include "api/anthropic/message_error.h"
#include "api/anthropic/message_request.h"
#include "api/anthropic/message_shape.h"
#include "api/api_error.h"
#include "api/api_stats.h"
#include "api/batch_answer.h"
#include "api/chat_shape.h"
#include "api/embeddings.h"
#include "api/exchange.h"
#include "api/grammar_store.h"
#include "api/infill.h"
#include "api/keys.h"
#include "api/memory_cost.h"
#include "api/output_plan.h"
#include "api/prepare.h"
#include "api/rerank.h"
#include "api/rerank_request.h"
#include "api/response_store.h"
#include "api/responses.h"
#include "api/server_pages.h"
#include "api/stream.h"
#include "api/token_endpoints.h"
#include "base/check.h"
#include "base/json.h"
#include "base/trace.h"
#include "net/routes.h"

namespace weir::api {

namespace {

// Bodies up to this size are read even without a key, so that a browser gets an answer with all its
// headers; longer ones are refused before they are read.
// Chunked ones too: nobody knows their length.
constexpr uint64_t kUnauthorisedBodyMax = 1 << 20;

// How often silent streams, and requests whose client has left, are looked at.
constexpr uint64_t kTickMs = 1000;

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  return std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(), [](char low, char c) {
    return low == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  });
}

// application/json or something+json; absent is taken for it, because many clients leave it out.
bool is_json(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  if (content_type.empty()) return true;
  return (content_type.size() == 16 &&
          starts_with_ignoring_case(content_type, "application/json")) ||
         (content_type.size() > 5 &&
          starts_with_ignoring_case(content_type.substr(content_type.size() - 5), "+json"));
}

Error unauthorised() {
  return {ErrorCode::kUnauthorized,
          "Incorrect or missing API key: expected a key of this server in 'Authorization: Bearer "
          "KEY'.",
          {},
          "invalid_api_key"};
}

// RFC 9110 11.6.1: a 401 says how to do better.
const net::HttpResponder::Headers::value_type kChallenge{"WWW-Authenticate", "Bearer"};

// Who may see what a client has stored: whoever has its key.
std::string owner_of(const Exchange& exchange) {
  return exchange.key() ? exchange.key()->name() : std::string();
}

void respond_page(Exchange& exchange, const Result<std::string>& page) {
  if (!page) return exchange.respond_error(page.error());
  exchange.respond_json(*page);
}

ApiConfig with_own(ApiConfig config, GrammarStore& grammars, const OutputFormats& outputs) {
  config.grammars = &grammars;
  config.outputs = &outputs;
  config.infill = find_infill_tokens(*config.tokenizer);
  return config;
}

}  // namespace

struct Api::Impl {
  explicit Impl(ApiConfig config_in);

  using Action = void (Impl::*)(const ExchangePtr&, const net::RouteParams&);
  struct Row {
    EndpointDoc doc;
    Action action;
  };
  // Every endpoint, in the order of the reference.
  static std::span<const Row> table();
  void add_routes();
  void handle(net::HttpRequest&& request, net::HttpResponderPtr responder);
  void refuse(int status, const std::string& allow, const ExchangePtr& exchange);
  bool admit(Exchange& exchange, Access access) const;
  ExchangePtr open(net::HttpRequest&& request, net::HttpResponderPtr responder);

  // The endpoints.
  void chat_completions(const ExchangePtr& exchange, const net::RouteParams& params);
  void completions(const ExchangePtr& exchange, const net::RouteParams& params);
  void infill(const ExchangePtr& exchange, const net::RouteParams& params);
  void responses(const ExchangePtr& exchange, const net::RouteParams& params);
  void response(const ExchangePtr& exchange, const net::RouteParams& params);
  void delete_response(const ExchangePtr& exchange, const net::RouteParams& params);
  void response_input(const ExchangePtr& exchange, const net::RouteParams& params);
  void messages(const ExchangePtr& exchange, const net::RouteParams& params);
  void count_tokens(const ExchangePtr& exchange, const net::RouteParams& params);
  void embeddings(const ExchangePtr& exchange, const net::RouteParams& params);
  void rerank(const ExchangePtr& exchange, const net::RouteParams& params);
  void score(const ExchangePtr& exchange, const net::RouteParams& params);
  void models(const ExchangePtr& exchange, const net::RouteParams& params);
  void model(const ExchangePtr& exchange, const net::RouteParams& params);
  void props(const ExchangePtr& exchange, const net::RouteParams& params);
  void slots(const ExchangePtr& exchange, const net::RouteParams& params);
  void health(const ExchangePtr& exchange, const net::RouteParams& params);
  void metrics(const ExchangePtr& exchange, const net::RouteParams& params);
  void version(const ExchangePtr& exchange, const net::RouteParams& params);
  void openapi(const ExchangePtr& exchange, const net::RouteParams& params);
  void tokenize_text(const ExchangePtr& exchange, const net::RouteParams& params);
  void detokenize_ids(const ExchangePtr& exchange, const net::RouteParams& params);

  PrepareInput prepare_input(Endpoint endpoint, const Exchange& exchange) const;
  void generate(Endpoint endpoint, const ExchangePtr& exchange);
  std::unique_ptr<AnswerShape> shape_of(const PreparedAnswer& prepared) const;
  using BatchPreparer = Result<PreparedBatch> (*)(const ApiConfig&, MemoryBudget&,
                                                  const PrepareInput&);
  void answer_batch(const ExchangePtr& exchange, BatchPreparer prepare);
  void begin_stream(const ExchangePtr& exchange, PreparedAnswer prepared,
                    std::unique_ptr<AnswerShape> shape);
  // Runs `work` in the pool and `done` with its result on the loop, within preparing_max.
  template <class T>
  void in_pool(const ExchangePtr& exchange, std::function<Result<T>(const std::string& body)> work,
               std::function<void(Result<T>)> done);

  void poll_streams();
  void tick();
  void reap();
  int32_t tokens_max() const;

  const OutputFormats outputs;
  GrammarStore grammars;
  const ApiConfig config;
  const Exchange::Policy policy;
  ApiStats stats;
  MemoryBudget budget;       // For token logs.
  MemoryBudget body_budget;  // For what bodies take while they are prepared.
  ResponseStore response_store;
  net::Routes routes;
  const Keyring keys;
  StreamHost host;
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<BatchAnswer>> batches;
  const net::HttpStats* http_stats = nullptr;
  std::function<void(std::string&)> more_metrics;
  int32_t preparing = 0;
  bool draining = false;
  uint64_t next_request_id = 1;
};

Api::Impl::Impl(ApiConfig config_in)
    : outputs(choose_formats(config_in)),
      grammars(*config_in.tokenizer, config_in.vocab_size, config_in.defaults.eos_ids,
               config_in.automata_bytes_max, outputs.markers),
      config(with_own(std::move(config_in), grammars, outputs)),
      policy{CorsPolicy(config.cors_origins), config.retry_after_s},
      budget(config.log_bytes_max),
      body_budget(config.preparing_bytes_max),
      response_store(config.responses_bytes_max),
      keys(config.api_keys) {
  CHECK(config.tokenizer && config.engine && config.loop);
  host.tokenizer = config.tokenizer;
  host.engine = config.engine;
  host.stats = &stats;
  host.loop = config.loop;
  host.queue_timeout = std::chrono::duration<double>(config.queue_timeout_s);
  host.request_timeout = std::chrono::duration<double>(config.request_timeout_s);
  host.pause_bytes = config.stream_pause_bytes;
  host.keep_alive = std::chrono::milliseconds(config.keep_alive_ms);
  add_routes();
  config.loop->on_wake([this] { poll_streams(); });
  config.loop->every(kTickMs, [this] { tick(); });
}

std::span<const Api::Impl::Row> Api::Impl::table() {
  using enum Access;
  static const std::array kTable = std::to_array<Row>({
      {{"POST", "/v1/chat/completions", "Answers a conversation.", kApi, &chat_fields},
       &Impl::chat_completions},
      {{"POST", "/v1/completions", "Continues a text.", kApi, &completion_fields},
       &Impl::completions},
      {{"POST", "/infill", "Writes what stands between two texts (llama.cpp).", kApi,
        &infill_fields},
       &Impl::infill},
      {{"POST", "/v1/responses", "Answers a conversation in items, and keeps it.", kApi,
        &responses_fields},
       &Impl::responses},
      {{"GET", "/v1/responses/{id}", "A stored response.", kApi}, &Impl::response},
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
      {{"POST", "/v1/embeddings", "Vectors for texts.", kApi, &embedding_fields},
       &Impl::embeddings},
      {{"POST", "/v1/rerank", "Orders documents by how well they fit a query, for rerankers.", kApi,
        &rerank_fields},
       &Impl::rerank},
      {{"POST", "/rerank", "The same.", kApi, &rerank_fields}, &Impl::rerank},
      {{"POST", "/v1/score", "How well texts fit one another, in their order (vLLM).", kApi,
        &score_fields},
       &Impl::score},
      {{"GET", "/v1/models", "The model that is served, in a list.", kAnyKey}, &Impl::models},
      {{"GET", "/v1/models/{id}", "The model, by its id or an alias.", kAnyKey}, &Impl::model},
      {{"POST", "/tokenize", "Text or messages to tokens.", kApi, &tokenize_fields},
       &Impl::tokenize_text},
      {{"POST", "/detokenize", "Tokens to text.", kApi, &detokenize_fields}, &Impl::detokenize_ids},
      {{"GET", "/health", "200 unless the server is loading or shutting down.", kOpen},
       &Impl::health},
      {{"GET", "/v1/health", "The same.", kOpen}, &Impl::health},
      {{"GET", "/ready", "200 while requests are accepted.", kOpen}, &Impl::health},
      {{"GET", "/props", "The server's properties (llama.cpp).", kAnyKey}, &Impl::props},
      {{"GET", "/slots", "Open requests: running, then waiting with queue_position (llama.cpp).",
        kMonitor},
       &Impl::slots},
      {{"GET", "/metrics", "Figures in Prometheus text format.", kMonitor}, &Impl::metrics},
      {{"GET", "/version", "The server's version.", kAnyKey}, &Impl::version},
      {{"GET", "/openapi.json", "This reference, as OpenAPI 3.1.", kAnyKey}, &Impl::openapi},
  });
  return kTable;
}

void Api::Impl::add_routes() {
  for (const Row& row : table())
    routes.add(row.doc.method, row.doc.path,
               [this, &row](net::HttpRequest&& request, const net::RouteParams& params,
                            net::HttpResponderPtr responder) {
                 const ExchangePtr exchange = open(std::move(request), std::move(responder));
                 if (admit(*exchange, row.doc.access)) (this->*row.action)(exchange, params);
               });
}

ExchangePtr Api::Impl::open(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  return std::make_shared<Exchange>(policy, stats, std::move(request), std::move(responder));
}

void Api::Impl::handle(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  if (auto headers = policy.cors.preflight(request))
    return open(std::move(request), std::move(responder))
        ->respond(204, {}, {}, std::move(*headers));
  routes.dispatch(std::move(request), std::move(responder),
                  [this](int status, const std::string& allow, net::HttpRequest&& missed,
                         net::HttpResponderPtr missed_responder) {
                    refuse(status, allow, open(std::move(missed), std::move(missed_responder)));
                  });
}

void Api::Impl::refuse(int status, const std::string& allow, const ExchangePtr& exchange) {
  const std::string what =
      exchange->request().method + " " + exchange->request().path.substr(0, 256);
  if (status == 404)
    return exchange->respond_error(error_of_status(404, "Unknown request URL: " + what + "."));
  if (status == 405)
    return exchange->respond_error(
        error_of_status(405, "Not allowed: " + what + "; expected " + allow + "."),
        {{"Allow", allow}});
  exchange->respond_error(
      error_of_status(status, "Invalid percent-encoding in the path of " + what + "."));
}

// Checks what all endpoints ask of a request; answers it if it fails.
bool Api::Impl::admit(Exchange& exchange, Access access) const {
  const net::HttpRequest& request = exchange.request();
  if (!keys.empty() && access != Access::kOpen) {
    Key* const key = keys.find(request);
    if (!key) {
      exchange.respond_error(unauthorised(), {kChallenge});
      return false;
    }
    exchange.set_key(key);
    if (!key->may_use(access)) {
      exchange.respond_error(Error{ErrorCode::kForbidden,
                                   "This key may not use " + request.path.substr(0, 256) +
                                       ": its scope is " +
                                       (access == Access::kApi ? "monitor" : "api") + ".",
                                   {},
                                   "insufficient_permissions"});
      return false;
    }
    // What only looks is not counted: a limit must not blind whoever watches it.
    if (request.method == "POST") {
      if (const auto refusal = key->begin(sched::Clock::now())) {
        exchange.respond_refusal(*refusal);
        return false;
      }
      exchange.hold(KeyUse(key));
    }
  }
  if (request.method == "POST" && !request.body.empty() &&
      !is_json(request.header("content-type"))) {
    exchange.respond_error(
        Error{ErrorCode::kMediaType, "Unsupported content type: expected application/json, found " +
                                         std::string(request.header("content-type")) + "."});
    return false;
  }
  return true;
}

int32_t Api::Impl::tokens_max() const {
  const int32_t fit = config.engine->max_tokens_fit();
  return fit > 0 ? std::min(fit, config.context_max) : config.context_max;
}

template <class T>
void Api::Impl::in_pool(const ExchangePtr& exchange,
                        std::function<Result<T>(const std::string& body)> work,
                        std::function<void(Result<T>)> done) {
  struct Task {
    MemoryLease lease;  // For the body and what becomes of it.
    std::string body;
    std::optional<Result<T>> result;
  };
  const auto task = std::make_shared<Task>();
  task->body = exchange->take_body();
  const size_t bytes = preparing_bytes(task->body);
  if (bytes > body_budget.bytes_max())
    return exchange->respond_error(
        Error{ErrorCode::kTooLarge, "The body needs " + std::to_string(bytes) +
                                        " bytes of memory to be parsed, more than this server "
                                        "gives to all requests: expected fewer or longer values."});
  auto lease = body_budget.take(bytes);
  if (lease) task->lease = std::move(*lease);
  const bool accepted = lease && preparing < config.preparing_max &&
                        config.loop->run_in_pool(
                            [task, work = std::move(work)] {
                              task->result = work(task->body);
                              std::string().swap(task->body);
                              task->lease = {};
                            },
                            [this, exchange, task, done = std::move(done)] {
                              stats.preparing.set(--preparing);
                              if (exchange->responder().closed()) return exchange->abandon();
                              done(std::move(*task->result));
                            });
  if (accepted)
    stats.preparing.set(++preparing);
  else
    exchange->respond_error(
        Error{ErrorCode::kOverloaded, "Too many requests are being prepared; try again later."});
}

PrepareInput Api::Impl::prepare_input(Endpoint endpoint, const Exchange& exchange) const {
  PrepareInput input;
  input.endpoint = endpoint;
  input.arrived = exchange.arrived();
  input.now = std::time(nullptr);
  input.random_seed = random_bits();
  input.tokens_max = tokens_max();
  if (const Key* const key = exchange.key()) input.priority_min = key->spec().priority;
  return input;
}

void Api::Impl::generate(Endpoint endpoint, const ExchangePtr& exchange) {
  PrepareInput input = prepare_input(endpoint, *exchange);
  in_pool<PreparedAnswer>(
      exchange,
      [this, input](const std::string& body) mutable {
        input.body = body;
        return prepare_answer(config, budget, input);
      },
      [this, exchange](Result<PreparedAnswer> prepared) {
        if (!prepared) return exchange->respond_error(prepared.error());
        auto shape = shape_of(*prepared);
        begin_stream(exchange, std::move(*prepared), std::move(shape));
      });
}

// Of the answer to a chat, a completion or Anthropic's messages.
std::unique_ptr<AnswerShape> Api::Impl::shape_of(const PreparedAnswer& prepared) const {
  const AnswerOptions& options = prepared.options;
  if (options.endpoint == Endpoint::kMessages)
    return anthropic::make_message_shape(
        {random_id("msg_"), config.model_id, options.stream, options.show_reasoning});
  ChatFacts facts;
  facts.endpoint = options.endpoint;
  facts.id = random_id(options.endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-");
  facts.model = config.model_id;
  facts.created = std::time(nullptr);
  facts.stream = options.stream;
  facts.choices = static_cast<int32_t>(prepared.requests.size());
  facts.include_usage = options.include_usage;
  facts.legacy_functions = options.legacy_functions;
  return make_chat_shape(facts);
}

void Api::Impl::begin_stream(const ExchangePtr& exchange, PreparedAnswer prepared,
                             std::unique_ptr<AnswerShape> shape) {
  int64_t prompt_tokens = 0;
  const auto per_prompt = static_cast<size_t>(prepared.options.choices_per_prompt);
  for (size_t i = 0; i < prepared.requests.size(); i += per_prompt)
    prompt_tokens += std::ssize(prepared.requests[i].request->prompt);
  if (const auto refusal = exchange->take_prompt_tokens(prompt_tokens))
    return exchange->respond_refusal(*refusal);

  for (OwnedRequest& owned : prepared.requests) owned.request->id = next_request_id++;
  const auto stream =
      std::make_shared<Stream>(host, exchange, std::move(prepared), std::move(shape));
  if (const Result<void> submitted = stream->submit(); !submitted)
    return exchange->respond_error(submitted.error());
  streams.push_back(stream);
  stats.open_answers.set(static_cast<double>(streams.size() + batches.size()));
  stream->poll(sched::Clock::now());  // The engine may have been quick.
}

void Api::Impl::answer_batch(const ExchangePtr& exchange, BatchPreparer prepare) {
  PrepareInput input;
  input.arrived = exchange->arrived();
  input.now = std::time(nullptr);
  input.tokens_max = tokens_max();
  if (const Key* const key = exchange->key()) input.priority_min = key->spec().priority;
  in_pool<PreparedBatch>(
      exchange,
      [this, input, prepare](const std::string& body) mutable {
        input.body = body;
        return prepare(config, budget, input);
      },
      [this, exchange](Result<PreparedBatch> prepared) {
        if (!prepared) return exchange->respond_error(prepared.error());
        for (OwnedRequest& owned : prepared->requests) owned.request->id = next_request_id++;
        const auto answer = std::make_shared<BatchAnswer>(host, exchange, std::move(*prepared));
        if (const auto refusal = exchange->take_prompt_tokens(answer->prompt_tokens()))
          return exchange->respond_refusal(*refusal);
        if (const Result<void> submitted = answer->submit(); !submitted)
          return exchange->respond_error(submitted.error());
        batches.push_back(answer);
        stats.open_answers.set(static_cast<double>(streams.size() + batches.size()));
        answer->poll();  // The engine may have been quick.
      });
}

void Api::Impl::poll_streams() {
  const trace::Scope scope(trace::Kind::kNetwork, "events");
  const sched::Clock::time_point now = sched::Clock::now();
  for (size_t i = 0; i < streams.size(); ++i) {
    for (size_t step = 0; step < Stream::kPrefetchSteps; ++step)
      if (const size_t ahead = i + Stream::kPrefetchSteps - step; ahead < streams.size())
        streams[ahead]->prefetch(step);
    streams[i]->poll(now);
  }
  for (const std::shared_ptr<BatchAnswer>& batch : batches) batch->poll();
  reap();
}

void Api::Impl::tick() {
  poll_streams();
  const sched::Clock::time_point now = sched::Clock::now();
  double oldest_s = 0;
  for (const std::shared_ptr<Stream>& stream : streams) {
    stream->expire(now);
    stream->keep_alive(now);
    oldest_s = std::max(oldest_s, stream->waiting_seconds(now));
  }
  for (const std::shared_ptr<BatchAnswer>& batch : batches) {
    batch->expire(now);
    oldest_s = std::max(oldest_s, batch->waiting_seconds(now));
  }
  stats.oldest_waiting.set(oldest_s);
  reap();
}

void Api::Impl::reap() {
  std::erase_if(streams, [](const std::shared_ptr<Stream>& stream) { return stream->done(); });
  std::erase_if(batches, [](const std::shared_ptr<BatchAnswer>& batch) { return batch->done(); });
  std::erase_if(host.retired,
                [](const OwnedRequest& owned) { return owned.request->log.finished(); });
  stats.open_answers.set(static_cast<double>(streams.size() + batches.size()));
}

void Api::Impl::chat_completions(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(Endpoint::kChat, exchange);
}

void Api::Impl::completions(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(Endpoint::kCompletions, exchange);
}

void Api::Impl::infill(const ExchangePtr& exchange, const net::RouteParams&) {
  PrepareInput input = prepare_input(Endpoint::kCompletions, *exchange);
  in_pool<PreparedAnswer>(
      exchange,
      [this, input](const std::string& body) mutable {
        input.body = body;
        return prepare_infill(config, budget, input);
      },
      [this, exchange](Result<PreparedAnswer> prepared) {
        if (!prepared) return exchange->respond_error(prepared.error());
        auto shape = make_infill_shape(config.model_id, prepared->options.stream);
        begin_stream(exchange, std::move(*prepared), std::move(shape));
      });
}

void Api::Impl::responses(const ExchangePtr& exchange, const net::RouteParams&) {
  ResponsesInput input;
  input.prepare = prepare_input(Endpoint::kResponses, *exchange);
  input.id = random_id("resp_");
  input.owner = owner_of(*exchange);
  input.store = &response_store;
  input.preparing = &body_budget;
  in_pool<PreparedResponse>(
      exchange,
      [this, input](const std::string& body) mutable {
        input.prepare.body = body;
        return prepare_response(config, budget, input);
      },
      [this, exchange](Result<PreparedResponse> prepared) {
        if (!prepared) return exchange->respond_error(prepared.error());
        begin_stream(exchange, std::move(prepared->answer),
                     make_responses_shape(std::move(prepared->facts)));
      });
}

void Api::Impl::response(const ExchangePtr& exchange, const net::RouteParams& params) {
  respond_page(*exchange, response_page(response_store, params["id"], owner_of(*exchange),
                                        std::time(nullptr)));
}

void Api::Impl::delete_response(const ExchangePtr& exchange, const net::RouteParams& params) {
  respond_page(*exchange, delete_response_page(response_store, params["id"], owner_of(*exchange),
                                               std::time(nullptr)));
}

void Api::Impl::response_input(const ExchangePtr& exchange, const net::RouteParams& params) {
  in_pool<std::string>(
      exchange,
      [this, id = params["id"], owner = owner_of(*exchange), now = std::time(nullptr),
       query = exchange->request().query](const std::string&) {
        return input_items_page(response_store, body_budget, id, owner, now, query);
      },
      [exchange](const Result<std::string>& page) { respond_page(*exchange, page); });
}

void Api::Impl::messages(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(Endpoint::kMessages, exchange);
}

void Api::Impl::count_tokens(const ExchangePtr& exchange, const net::RouteParams&) {
  const int64_t now = std::time(nullptr);
  in_pool<std::string>(
      exchange,
      [this, now, tokens = tokens_max()](const std::string& body) {
        return anthropic::count_tokens(config, body, now, tokens);
      },
      [exchange](Result<std::string> answer) {
        if (!answer) return exchange->respond_error(answer.error());
        exchange->respond_json(*answer);
      });
}

void Api::Impl::embeddings(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &prepare_embeddings);
}

void Api::Impl::rerank(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &prepare_rerank);
}

void Api::Impl::score(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &prepare_score);
}

void Api::Impl::models(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(models_page(config, tokens_max()));
}

void Api::Impl::model(const ExchangePtr& exchange, const net::RouteParams& params) {
  const std::string& id = params["id"];
  if (const Result<void> known = check_model(config, id); !known)
    return exchange->respond_error(known.error());
  exchange->respond_json(model_page(config, id, tokens_max()));
}

void Api::Impl::props(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(props_page(config, tokens_max()));
}

void Api::Impl::slots(const ExchangePtr& exchange, const net::RouteParams&) {
  const std::string& query = exchange->request().query;
  if (query.find("fail_on_no_slot=1") != std::string::npos && config.parallel > 0 &&
      config.engine->stats().running.value() >= config.parallel)
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "No slot is free."});
  std::vector<OpenRequest> open;
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<Stream>& stream : streams) stream->list_open(open, now);
  for (const std::shared_ptr<BatchAnswer>& batch : batches) batch->list_open(open, now);
  exchange->respond_json(slots_page(config, tokens_max(), std::move(open)));
}

void Api::Impl::health(const ExchangePtr& exchange, const net::RouteParams&) {
  if (draining || config.engine->draining())
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  exchange->respond_json("{\"status\":\"ok\"}");
}

void Api::Impl::metrics(const ExchangePtr& exchange, const net::RouteParams&) {
  std::string page = metrics_page(stats, config.engine->stats(), http_stats, config.model_id);
  render_keys(page, keys);
  if (more_metrics) more_metrics(page);
  exchange->respond(200, "text/plain; version=0.0.4; charset=utf-8", page);
}

void Api::Impl::version(const ExchangePtr& exchange, const net::RouteParams&) {
  std::string body;
  JsonWriter(body).begin_object().field("version", config.version).end_object();
  exchange->respond_json(body);
}

void Api::Impl::openapi(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(openapi_json(Api::endpoints(), config.version));
}

void Api::Impl::tokenize_text(const ExchangePtr& exchange, const net::RouteParams&) {
  const int64_t now = std::time(nullptr);
  in_pool<std::string>(
      exchange,
      [this, now, tokens = tokens_max()](const std::string& body) {
        return tokenize(config, body, now, tokens);
      },
      [exchange](Result<std::string> answer) {
        if (!answer) return exchange->respond_error(answer.error());
        exchange->respond_json(*answer);
      });
}

void Api::Impl::detokenize_ids(const ExchangePtr& exchange, const net::RouteParams&) {
  in_pool<std::string>(
      exchange,
      [this, tokens = tokens_max()](const std::string& body) {
        return detokenize(config, body, tokens);
      },
      [exchange](Result<std::string> answer) {
        if (!answer) return exchange->respond_error(answer.error());
        exchange->respond_json(*answer);
      });
}

Api::Api(ApiConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}

Api::~Api() = default;

void Api::handle(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  impl_->handle(std::move(request), std::move(responder));
}

std::vector<EndpointDoc> Api::endpoints() {
  std::vector<EndpointDoc> docs;
  for (const Impl::Row& row : Impl::table()) docs.push_back(row.doc);
  return docs;
}

std::pair<std::string, std::string> Api::error_body(int status, std::string_view message,
                                                    const net::HttpRequest& request) {
  const Error error = status == 401 ? unauthorised()  // check_headers() refused.
                                    : error_of_status(status, std::string(message));
  return {"application/json", anthropic::is_messages_path(request.path)
                                  ? anthropic::error_json(error, {})
                                  : error_json(error)};
}

net::HttpResponder::Headers Api::error_headers(int status, const net::HttpRequest& request) const {
  net::HttpResponder::Headers headers = Exchange::common_headers(impl_->policy, request, status);
  if (status == 401) headers.push_back(kChallenge);
  return headers;
}

int Api::check_headers(const net::HttpRequest& request, uint64_t content_length) const {
  const Keyring& keys = impl_->keys;
  const bool refused =
      content_length > kUnauthorisedBodyMax && !keys.empty() && !keys.find(request);
  return refused ? 401 : 0;
}

void Api::answer_loading(const net::HttpRequest& request, net::HttpResponder& responder) {
  const auto [type, body] =
      error_body(503, "The model is still loading; try again later.", request);
  responder.respond(503, {{"Content-Type", type}, {"Retry-After", "1"}}, body);
}

net::HttpResponder::Headers Api::loading_headers(int status) {
  if (status != 503) return {};
  return {{"Retry-After", "1"}};
}

void Api::set_more_metrics(std::function<void(std::string&)> render) {
  impl_->more_metrics = std::move(render);
}

void Api::set_http_stats(const net::HttpStats* stats) { impl_->http_stats = stats; }

void Api::begin_drain() { impl_->draining = true; }

void Api::cancel_all() {
  for (const std::shared_ptr<Stream>& stream : impl_->streams)
    stream->fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  for (const std::shared_ptr<BatchAnswer>& batch : impl_->batches)
    batch->fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  impl_->reap();
}

bool Api::idle() const {
  impl_->reap();
  return impl_->preparing == 0 && impl_->batches.empty() && impl_->host.retired.empty() &&
         std::ranges::all_of(impl_->streams, [](const auto& stream) { return stream->ending(); });
}

}  // namespace weir::api
