// What the Api is made of. api.cpp lets requests in and looks after what is open, queue_entry.cpp
// has answers enter the engine's queue, api_table.cpp says what there is, answer_actions.cpp
// answers what tokens are computed for, media_reading.cpp has their media read before,
// ollama_actions.cpp answers what Ollama's clients ask, model_actions.cpp which models there are,
// page_actions.cpp the rest.
//
// Threads: the loop's, but for the work given to in_pool().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/access/entrance.h"
#include "api/access/keys.h"
#include "api/access/queue_room.h"
#include "api/access/refusal_turns.h"
#include "api/answer/answer_shape.h"
#include "api/api.h"
#include "api/exchange/api_stats.h"
#include "api/exchange/exchange.h"
#include "api/memory/memory_cost.h"
#include "api/models/model_pulls.h"
#include "api/ollama/model_pages.h"
#include "api/ollama/protocol.h"
#include "api/ollama/pull_answer.h"
#include "api/pages/adapter_pages.h"
#include "api/pages/dashboard.h"
#include "api/pages/model_feed.h"
#include "api/pages/model_pages.h"
#include "api/media/media_set.h"
#include "api/preparation.h"
#include "api/prompt/prepare.h"
#include "api/prompt/protocol.h"
#include "api/responses/responses.h"
#include "api/responses/store.h"
#include "api/served_model.h"
#include "api/served_store.h"
#include "api/serving/only_model.h"
#include "api/serving/serving_context.h"
#include "api/stream/batch_answer.h"
#include "api/stream/stream.h"
#include "base/background_thread.h"
#include "net/routes.h"

namespace weir::api {

// Of bodies that adapter_actions.cpp reads.
std::vector<FieldDoc> load_adapter_fields();
std::vector<FieldDoc> unload_adapter_fields();

struct Api::Impl {
  Impl(ApiConfig config_in, std::optional<ModelSet> set);

  using Action = void (Impl::*)(const ExchangePtr&, const net::RouteParams&);
  using WithModel = std::function<void(const ModelUsePtr&)>;
  struct Row {
    EndpointDoc doc;
    Action action;
  };
  // Every endpoint, in the order of the reference.
  struct Table;
  static std::span<const Row> table();
  static const Row& ui_row();
  void add_route(std::string_view path, const Row& row);
  void add_routes();
  void handle(net::HttpRequest&& request, net::HttpResponderPtr responder);
  void refuse(int status, const std::string& allow, const ExchangePtr& exchange);
  bool admit(Exchange& exchange, const EndpointDoc& endpoint) const;
  bool wants_body(const net::HttpRequest& request) const;
  ExchangePtr open(net::HttpRequest&& request, net::HttpResponderPtr responder);

  // The endpoints.
  void chat_completions(const ExchangePtr& exchange, const net::RouteParams& params);
  void completions(const ExchangePtr& exchange, const net::RouteParams& params);
  void llama_completion(const ExchangePtr& exchange, const net::RouteParams& params);
  void infill(const ExchangePtr& exchange, const net::RouteParams& params);
  void responses(const ExchangePtr& exchange, const net::RouteParams& params);
  void response(const ExchangePtr& exchange, const net::RouteParams& params);
  void response_tokens(const ExchangePtr& exchange, const net::RouteParams& params);
  void cancel_response(const ExchangePtr& exchange, const net::RouteParams& params);
  void delete_response(const ExchangePtr& exchange, const net::RouteParams& params);
  void response_input(const ExchangePtr& exchange, const net::RouteParams& params);
  void messages(const ExchangePtr& exchange, const net::RouteParams& params);
  void count_tokens(const ExchangePtr& exchange, const net::RouteParams& params);
  void embeddings(const ExchangePtr& exchange, const net::RouteParams& params);
  void transcriptions(const ExchangePtr& exchange, const net::RouteParams& params);
  void translations(const ExchangePtr& exchange, const net::RouteParams& params);
  void refuse_speech(const ExchangePtr& exchange, const net::RouteParams& params);
  void rerank(const ExchangePtr& exchange, const net::RouteParams& params);
  void cohere_rerank(const ExchangePtr& exchange, const net::RouteParams& params);
  void score(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_chat(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_generate(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_embed(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_embeddings(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_version(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_tags(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_ps(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_show(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_pull(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_delete(const ExchangePtr& exchange, const net::RouteParams& params);
  void ollama_refuse(const ExchangePtr& exchange, const net::RouteParams& params);
  void models(const ExchangePtr& exchange, const net::RouteParams& params);
  void model(const ExchangePtr& exchange, const net::RouteParams& params);
  void load_adapter(const ExchangePtr& exchange, const net::RouteParams& params);
  void unload_adapter(const ExchangePtr& exchange, const net::RouteParams& params);
  void adapter_scales(const ExchangePtr& exchange, const net::RouteParams& params);
  void set_adapter_scales(const ExchangePtr& exchange, const net::RouteParams& params);
  void with_adapters(const ExchangePtr& exchange, WithModel then);
  using AdapterWork = std::function<Result<std::string>(Adapters* adapters, std::string_view body)>;
  void about_adapters(const ExchangePtr& exchange, AdapterWork work, std::string_view type);
  void render_adapters(std::string& page);
  void search_models(const ExchangePtr& exchange, const net::RouteParams& params);
  void pull_model(const ExchangePtr& exchange, const net::RouteParams& params);
  void delete_model(const ExchangePtr& exchange, const net::RouteParams& params);
  void load_model(const ExchangePtr& exchange, const net::RouteParams& params);
  void unload_model(const ExchangePtr& exchange, const net::RouteParams& params);
  void model_events(const ExchangePtr& exchange, const net::RouteParams& params);
  void props(const ExchangePtr& exchange, const net::RouteParams& params);
  void tokenizer_info(const ExchangePtr& exchange, const net::RouteParams& params);
  void slots(const ExchangePtr& exchange, const net::RouteParams& params);
  void ui_file(const ExchangePtr& exchange, const net::RouteParams& params);
  void front_page(const ExchangePtr& exchange, const net::RouteParams& params);
  void health(const ExchangePtr& exchange, const net::RouteParams& params);
  void metrics(const ExchangePtr& exchange, const net::RouteParams& params);
  void dashboard(const ExchangePtr& exchange, const net::RouteParams& params);
  void version(const ExchangePtr& exchange, const net::RouteParams& params);
  void openapi(const ExchangePtr& exchange, const net::RouteParams& params);
  void tokenize_text(const ExchangePtr& exchange, const net::RouteParams& params);
  void apply_template(const ExchangePtr& exchange, const net::RouteParams& params);
  void detokenize_ids(const ExchangePtr& exchange, const net::RouteParams& params);

  responses::ResponsesInput responses_input(const Exchange& exchange);
  responses::StoredQuery stored_query(const Exchange& exchange, const net::RouteParams& params);
  // Calls `then` with the model that the request names once that is loaded; or answers the request
  // with an error. `events`: a stream of them may begin before, if it is asked for and takes long.
  void with_model(const ExchangePtr& exchange, WithModel then, bool events = false);
  void wait_for_model(const ExchangePtr& exchange, const std::string& name, bool events,
                      WithModel then);
  void take_model(const ExchangePtr& exchange, ModelLease lease, const WithModel& then);
  // The model that ?model= names, where it is loaded; without one the first that is. Null: none is,
  // and the exchange has been answered.
  std::shared_ptr<ServedModel> asked_model(const ExchangePtr& exchange);
  std::shared_ptr<ServedModel> first_loaded() const;
  void keep_waiting();
  // As the path of a page names it.
  Result<size_t> find_model(std::string_view name) const;
  pages::ModelLine line_of(size_t number) const;
  void list_models(const ExchangePtr& exchange) const;
  void heard_of_pull(const PullStatus& pull);
  // The id of the loaded model that has an adapter of that name; else the name itself.
  std::string model_of(std::string_view name) const;
  void render_models(std::string& out) const;

  PrepareInput prepare_input(const Exchange& exchange, const ServedModel& model) const;
  // Calls `then` with what the model's engine is to compute. `events`: as with_model().
  using Prepared = std::function<void(const ModelUsePtr& use, PreparedAnswer prepared)>;
  void prepare(const std::shared_ptr<Protocol>& protocol, const ExchangePtr& exchange,
               Prepared then, bool events);
  void generate(const std::shared_ptr<Protocol>& protocol, const ExchangePtr& exchange);
  void ollama_answer(const std::shared_ptr<ollama::OllamaProtocol>& protocol,
                     const ExchangePtr& exchange);
  void fulfil(const ollama::ModelOrder& order, const ExchangePtr& exchange);
  // Whether the client may change for everybody what the server does.
  bool may_manage(const Exchange& exchange) const;
  void about_model(const ExchangePtr& exchange,
                   Result<ollama::ModelBody> (*parse)(std::string_view),
                   std::function<void(const ollama::ModelBody& body)> call);
  using BatchPreparer = Result<PreparedBatch> (*)(const ServingContext&, MemoryBudget&,
                                                  const PrepareInput&);
  // `media`: it is prepared where images and sounds are read.
  void answer_batch(const ExchangePtr& exchange, BatchPreparer prepare_batch, bool media = false);
  void begin_stream(const ModelUsePtr& use, const ExchangePtr& exchange, PreparedAnswer prepared,
                    std::unique_ptr<AnswerShape> shape);
  void begin_batch(const ModelUsePtr& use, const ExchangePtr& exchange, PreparedBatch prepared);
  // Runs `work` in the pool and `done` with its result on the loop, when it is the caller's turn.
  // `interrupt`: what ends the work early, if that looks at it; the work is done again then.
  // `media`: those that the work may want; they are read then, and the work is done again.
  // `recording`: the work reads a recording itself, and waits for no other.
  template <class T>
  void in_pool(const ExchangePtr& exchange, std::function<Result<T>(std::string& body)> work,
               std::function<void(Result<T>)> done,
               std::shared_ptr<grammar::Interrupt> interrupt = nullptr,
               MediaSetPtr media = nullptr, bool recording = false);
  template <class T>
  struct Task;
  template <class T>
  void run_task(const ExchangePtr& exchange, const std::shared_ptr<Task<T>>& task);
  // Has the media read and calls `then`, unless the client leaves before.
  void read_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                     std::function<void()> then);
  void fetch_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                      std::function<void()> then);
  void decode_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                       std::function<void()> then);
  void count(const SeenMedium& seen);
  void end_fetches(const Error& error);
  std::optional<MemoryLease> lease_body(const ExchangePtr& exchange, const std::string& body);
  void hand_over(Preparation& to, const ExchangePtr& exchange, Preparation::Job job);
  // Answers with a page that is made in the pool.
  void respond_from_pool(const ExchangePtr& exchange,
                         std::function<Result<std::string>(const std::string& body)> work);
  // The same of the request's model.
  using ModelPage = std::function<Result<std::string>(const ServedModel&, const std::string& body)>;
  void respond_with_model(const ExchangePtr& exchange, ModelPage work);
  // The same of a page that counts the tokens of a conversation, which may have media.
  using TokenCounter =
      std::function<Result<std::string>(const ServingContext& serving, const PrepareInput& in)>;
  void count_with_model(const ExchangePtr& exchange, TokenCounter count);

  // Calls `begin`, which submits `choices` requests, once the model's queue has room, or never: the
  // answer is an error then.
  static void enter_queue(ServedModel& model, const ExchangePtr& exchange, int32_t choices,
                          std::function<void()> begin);
  static int32_t free_places(const ServedModel& model);
  static std::vector<QueuedAnswer> queued_answers(const ServedModel& model);
  static void begin_entries(ServedModel& model);
  static void expire_entries(ServedModel& model, sched::Clock::time_point now);
  static void refuse_entries(ServedModel& model, const Error& error);

  void poll_streams();
  void tick();
  void drop_changed_models();
  void tick_model(ServedModel& model, sched::Clock::time_point now, double& oldest_s);
  void reap();
  void show_open_answers();
  pages::Dashboard::Source dashboard_source() const;

  const ApiConfig config;  // Of the process: policy and machinery.
  const Exchange::Policy policy;
  const Entrance entrance;
  ApiStats stats;
  RefusalTurns refusals{stats.held_refusals};
  MemoryBudget budget;       // For token logs.
  MemoryBudget body_budget;  // For what bodies take while they are prepared.
  MemoryBudget media_budget;
  responses::ResponseStore response_store;
  net::Routes routes;
  std::vector<const Row*> routed;  // By the numbers of `routes`.
  Keyring keys;
  std::vector<std::shared_ptr<ollama::PullAnswer>> pulls;
  StreamHost preparing_host;  // How long preparation may last, whatever the model.
  ModelRegistry registry;
  std::vector<std::shared_ptr<ServedModel>> served;  // By the registry's numbers; null: not loaded.
  std::unique_ptr<ModelStore> model_store;           // Over these.
  // A request whose model is being loaded.
  struct Waiting {
    ExchangePtr exchange;
    uint64_t waiter = 0;  // The registry's.
    bool events = false;  // Comments are sent meanwhile.
    sched::Clock::time_point told{};
  };
  std::vector<Waiting> waiting;
  ModelPulls model_pulls;
  pages::ModelFeed model_feed;
  pages::Dashboard figures;
  const net::HttpStats* http_stats = nullptr;
  std::function<void(std::string&)> more_metrics;
  pages::AdapterUse adapter_use;
  std::map<uint64_t, ExchangePtr> fetches;  // By the media desk's numbers.
  bool draining = false;
  uint64_t next_request_id = 1;
  // Last, so that the work that it stops still finds everything else.
  BackgroundThread background{"weir-compile"};
  Preparation preparation;
  Preparation media_reading;
};

template <class T>
struct Api::Impl::Task {
  MemoryLease lease;  // For the body and what becomes of it.
  std::string body;
  std::function<Result<T>(std::string& body)> work;
  std::function<void(Result<T>)> done;
  std::shared_ptr<grammar::Interrupt> interrupt;
  MediaSetPtr media;
  bool recording = false;  // It is done where images and sounds are read.
  std::optional<Result<T>> result;

  bool waits() const { return media && media->is_wanted(); }
};

template <class T>
void Api::Impl::in_pool(const ExchangePtr& exchange,
                        std::function<Result<T>(std::string& body)> work,
                        std::function<void(Result<T>)> done,
                        std::shared_ptr<grammar::Interrupt> interrupt, MediaSetPtr media,
                        bool recording) {
  const auto task = std::make_shared<Task<T>>();
  task->body = exchange->take_body();
  auto lease = lease_body(exchange, task->body);
  if (!lease) return;
  task->lease = std::move(*lease);
  task->work = std::move(work);
  task->done = std::move(done);
  task->interrupt = interrupt ? std::move(interrupt) : std::make_shared<grammar::Interrupt>();
  task->media = std::move(media);
  task->recording = recording;
  run_task(exchange, task);
}

template <class T>
void Api::Impl::run_task(const ExchangePtr& exchange, const std::shared_ptr<Task<T>>& task) {
  Preparation::Job job;
  job.interrupt = task->interrupt;
  job.work = [task] {
    task->result = task->work(task->body);
    if (task->interrupt->postponed() || task->waits()) return;
    std::string().swap(task->body);
    task->lease = {};
  };
  job.done = [this, exchange, task] {
    if (exchange->responder().closed()) return exchange->abandon();
    if (task->waits())
      return read_media(exchange, task->media,
                           [this, exchange, task] { run_task(exchange, task); });
    task->done(std::move(*task->result));
  };
  hand_over(task->recording ? media_reading : preparation, exchange, std::move(job));
}

}  // namespace weir::api
