#include "suite/run.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/json.h"
#include "kernels/cpu_ops.h"
#include "program/commit.h"
#include "suite/json_value.h"

namespace weir::suite {

namespace {

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

template <class T>
Result<T> member(JsonValue value, const char* name) {
  T out{};
  if (value[name].get(out) == simdjson::SUCCESS) return out;
  return fail(ErrorCode::kIo,
              "weir info --json: expected '" + std::string(name) + "' in " + json_excerpt(value));
}

}  // namespace

Result<Run> Run::begin(const Options& options, Sink sink) {
  Run run(options, std::move(sink));
  run.setting_.quick = options.quick;
  run.setting_.time = time_now();
  run.setting_.version = kVersion;
  run.setting_.commit = commit();
  if (run.inside())
    WEIR_TRY(run.look_inside());
  else
    WEIR_TRY(run.look_at_url());
  return run;
}

Result<void> Run::look_inside() {
  std::vector<std::string> words = words_passed_on(options_, Command::kInfo);
  words.insert(words.begin(), "info");
  words.emplace_back("--json");
  WEIR_ASSIGN(const std::string output, output_of(words));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(output));
  const JsonValue root = doc.root();
  JsonValue plan;
  if (root["plan"].get(plan) != simdjson::SUCCESS || !plan.is_object()) {
    const auto why = root["fit"]["text"];
    return fail(ErrorCode::kConfig, "the model cannot be served with these options: " +
                                        std::string(value_or(why, std::string_view("no plan"))));
  }
  WEIR_ASSIGN(const std::string_view name, member<std::string_view>(root, "model"));
  WEIR_ASSIGN(const std::string_view isa, member<std::string_view>(root, "isa"));
  WEIR_ASSIGN(const std::string_view compute, member<std::string_view>(root, "compute"));
  WEIR_ASSIGN(const std::string_view kv, member<std::string_view>(root, "kv"));
  WEIR_ASSIGN(const int64_t threads, member<int64_t>(root, "threads"));
  WEIR_ASSIGN(const int64_t context, member<int64_t>(plan, "context"));
  WEIR_ASSIGN(model_.kv_tokens, member<int64_t>(plan, "kv_tokens"));
  setting_.model = name;
  setting_.isa = isa;
  setting_.compute = compute;
  setting_.kv = kv;
  setting_.threads = static_cast<int32_t>(threads);
  setting_.processor = kernels::processor_name();
  model_.context = static_cast<int32_t>(context);
  return {};
}

Result<void> Run::look_at_url() {
  WEIR_ASSIGN(url_, Endpoint::at(options_.url, options_.api_key));
  WEIR_ASSIGN(const JsonDoc doc, url_->ask_json({.path = "/v1/models", .body = {}}));
  const JsonValue entry_of = doc.root();
  std::string_view id;
  if (entry_of["data"].at(0)["id"].get(id) != simdjson::SUCCESS)
    return fail(ErrorCode::kIo, url_->url() + "/v1/models: expected a model in 'data'; found " +
                                    json_excerpt(entry_of));
  model_id_ = id;
  setting_.model = id;
  setting_.url = url_->url();
  // vLLM's name, which Weir has too; llama-server's.
  int64_t context = 0;
  if (entry_of["data"].at(0)["max_model_len"].get(context) != simdjson::SUCCESS)
    context = value_or(entry_of["data"].at(0)["meta"]["n_ctx"], int64_t{0});
  model_.context = static_cast<int32_t>(std::clamp<int64_t>(context, 0, 1 << 30));
  return {};
}

void Run::add(Figure figure) {
  figure.part = part_;
  figures_.push_back(std::move(figure));
  sink_.on_figure(figures_.back());
}

void Run::skip(std::string name, std::string why) {
  add({.name = std::move(name), .skipped = std::move(why)});
}

bool Run::needs_inside(const std::string& name) {
  if (!inside()) skip(name, "it needs the model itself, not only an address");
  return inside();
}

bool Run::needs_context(const std::string& name, int64_t tokens) {
  if (model_.context == 0 || tokens <= model_.context) return true;
  skip(name, "the context has " + std::to_string(model_.context) + " tokens");
  return false;
}

void Run::fail_part(const Error& error) {
  add({.name = "the part", .failure = "not measured: " + error.message});
}

Result<const Endpoint*> Run::endpoint() {
  if (url_) return &*url_;
  if (!server_) {
    say("starting a server");
    WEIR_ASSIGN(server_, Server::start(options_));
  }
  if (model_id_.empty()) {
    WEIR_ASSIGN(const JsonDoc doc,
                server_->endpoint().ask_json({.path = "/v1/models", .body = {}}));
    std::string_view id;
    if (doc.root()["data"].at(0)["id"].get(id) != simdjson::SUCCESS)
      return fail(ErrorCode::kIo,
                  "/v1/models: expected a model; found " + json_excerpt(doc.root()));
    model_id_ = id;
  }
  return &server_->endpoint();
}

Request Run::completion(Completion of) const {
  of.model = model_id_;
  return suite::completion(of);
}

Result<void> Run::stop_server() {
  if (!server_) return {};
  const Result<void> stopped = server_->stop();
  server_.reset();
  return stopped;
}

Result<double> Run::tokens_per_word() {
  if (tokens_per_word_) return *tokens_per_word_;
  constexpr int32_t kWordsAsked = 200;
  WEIR_ASSIGN(const Endpoint* at, endpoint());
  WEIR_ASSIGN(const JsonDoc doc,
              at->ask_json(completion({.prompt = words(kWordsAsked, 1), .max_tokens = 1})));
  int64_t tokens = 0;
  if (doc.root()["usage"]["prompt_tokens"].get(tokens) != simdjson::SUCCESS || tokens < 1)
    return fail(ErrorCode::kIo,
                "/v1/completions: expected usage.prompt_tokens; found " + json_excerpt(doc.root()));
  tokens_per_word_ = static_cast<double>(tokens) / kWordsAsked;
  return *tokens_per_word_;
}

}  // namespace weir::suite
