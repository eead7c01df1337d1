#include "api/exchange/api_stats.h"

#include <variant>

#include "base/log.h"
#include "base/process_usage.h"

namespace weir::api {

namespace {

// Their names are the engine's, the rest is as Prometheus has it.
void render_engine(std::string& out, const sched::EngineStats& engine) {
  for (const sched::NamedFigure& figure : engine.figures()) {
    const bool counts = std::holds_alternative<const Counter*>(figure.value);
    const std::string name = "weir_" + std::string(figure.name) + (counts ? "_total" : "");
    std::visit([&](const auto* value) { render(out, name, figure.help, *value, figure.labels); },
               figure.value);
  }
}

void render_api(std::string& out, const ApiStats& api) {
  constexpr std::string_view kAnswers = "weir_http_answers_total";
  render(out, kAnswers, "Answers by class of status.", api.answered_2xx, "status=\"2xx\"");
  render(out, kAnswers, "", api.answered_4xx, "status=\"4xx\"");
  render(out, kAnswers, "", api.answered_5xx, "status=\"5xx\"");
  constexpr std::string_view kFinished = "weir_choices_finished_total";
  render(out, kFinished, "Choices by finish reason.", api.finished_stop, "reason=\"stop\"");
  render(out, kFinished, "", api.finished_length, "reason=\"length\"");
  render(out, "weir_held_refusals_total",
         "Refusals for want of room that a caller was given later than at once.",
         api.held_refusals);
  render(out, "weir_client_disconnects_total", "Clients that left before the end of their answer.",
         api.disconnects);
  render(out, "weir_answer_failures_total", "Answers that ended with an error of the server.",
         api.failures);
  render(out, "weir_ignored_parts_total",
         "Fields, tools and keywords of requests that were ignored (x-weir-ignored).", api.ignored);
  render(out, "weir_queue_timeouts_total", "Requests that waited longer than --queue-timeout.",
         api.queue_timeouts);
  render(out, "weir_request_timeouts_total", "Answers that took longer than --request-timeout.",
         api.request_timeouts);
  render(out, "weir_queue_oldest_seconds", "Age of the oldest request that waits.",
         api.oldest_waiting);
  render(out, "weir_answers_open", "Answers being generated.", api.open_answers);
  render(out, "weir_requests_preparing", "Requests being parsed and tokenised.", api.preparing);
  render(out, "weir_requests_reading_images", "Requests whose images and sounds are being decoded.",
         api.reading_media);
  render(out, "weir_images_total", "Images of requests that were read.", api.pictures);
  render(out, "weir_videos_total", "Videos of requests that were read.", api.videos);
  render(out, "weir_sounds_total", "Sounds of requests that were read.", api.sounds);
  render(out, "weir_images_fetched_total", "Images, videos and sounds that came from web addresses.",
         api.fetched_media);
  render(out, "weir_prompt_tokens_cached_total", "Prompt tokens that requests found cached.",
         api.cached_prompt_tokens);
  render(out, "weir_time_to_first_token_seconds", "From arrival to the first token.",
         api.first_token);
  render(out, "weir_inter_token_seconds", "Between two tokens of a choice.", api.inter_token);
  render(out, "weir_answer_seconds", "From arrival to the end of the answer.", api.answer_time);
}

void render_http(std::string& out, const net::HttpStats& http) {
  render(out, "weir_http_connections_total", "Connections accepted.", http.connections);
  render(out, "weir_http_requests_total", "Requests read.", http.requests);
  render(out, "weir_http_refused_connections_total", "Connections over the limit.",
         http.refused_connections);
  render(out, "weir_http_malformed_total", "Requests that were not HTTP.", http.malformed);
  render(out, "weir_tls_failures_total", "Broken TLS handshakes and records.", http.tls_failures);
  render(out, "weir_http_refused_heads_total", "Heads beyond what all together may hold.",
         http.refused_heads);
  render(out, "weir_http_refused_bodies_total", "Bodies beyond what all together may hold.",
         http.refused_bodies);
  render(out, "weir_http_refused_answers_total",
         "Answers closed because all that wait for their clients hold as much as they may.",
         http.refused_answers);
  constexpr std::string_view kYielded = "weir_http_yielded_total";
  render(out, kYielded, "Connections given up for others, by what they kept waiting for.",
         http.yielded_idle, "what=\"request\"");
  render(out, kYielded, "", http.yielded_heads, "what=\"head\"");
  render(out, kYielded, "", http.yielded_bodies, "what=\"body\"");
  render(out, "weir_http_slow_readers_total",
         "Answers given up because they were taken too slowly.", http.slow_readers);
  render(out, "weir_http_open_connections", "Open connections.", http.open_connections);
  render(out, "weir_http_connections_max", "Connections that may be open.", http.connections_max);
  render(out, "weir_http_body_bytes_max", "The largest body of a request.", http.body_bytes_max);
}

// The handful that gateways and dashboards scrape from vLLM (decision 15).
void render_vllm(std::string& out, const ApiStats& api, const sched::EngineStats& engine,
                 std::string_view label) {
  render(out, "vllm:num_requests_running", "Number of requests running.", engine.running, label);
  render(out, "vllm:num_requests_waiting", "Number of requests waiting.", engine.waiting, label);
  render(out, "vllm:kv_cache_usage_perc", "KV cache usage; 1 means full.", engine.kv_usage, label);
  render(out, "vllm:prompt_tokens_total", "Prompt tokens of answered requests.", api.prompt_tokens,
         label);
  render(out, "vllm:generation_tokens_total", "Tokens given to clients.", api.output_tokens, label);
  render(out, "vllm:prefix_cache_queries_total", "Prompt tokens looked up.", engine.prefix_queries,
         label);
  render(out, "vllm:prefix_cache_hits_total", "Prompt tokens found.", engine.prefix_hits, label);
  render(out, "vllm:num_preemptions_total", "Preemptions.", engine.preemptions, label);
  render(out, "vllm:time_to_first_token_seconds", "Time to first token.", api.first_token, label);
  render(out, "vllm:time_per_output_token_seconds", "Time per output token.", api.inter_token,
         label);
  render(out, "vllm:inter_token_latency_seconds", "Inter-token latency.", api.inter_token, label);
  render(out, "vllm:e2e_request_latency_seconds", "End to end latency.", api.answer_time, label);
  render(out, "vllm:request_queue_time_seconds", "Time in the queue.", engine.queue_time, label);
  render(out, "vllm:request_prefill_time_seconds", "From the first planned slice to a token.",
         api.prefill_time, label);
  render(out, "vllm:request_decode_time_seconds", "From the first token to the last.",
         api.decode_time, label);
  render(out, "vllm:request_time_per_output_token_seconds", "Mean of a choice.",
         api.mean_token_time, label);
  render(out, "vllm:request_prompt_tokens", "Tokens of a choice's prompt.", api.prompt_length,
         label);
  render(out, "vllm:request_generation_tokens", "Tokens of a choice's answer.", api.answer_length,
         label);
  render(out, "vllm:iteration_tokens_total", "Tokens of a step.", engine.step_tokens, label);
  render(out, "vllm:spec_decode_num_drafts_total", "Slices of a step that had drafts.",
         engine.draft_rounds, label);
  render(out, "vllm:spec_decode_num_draft_tokens_total", "Drafts that steps have verified.",
         engine.drafts, label);
  render(out, "vllm:spec_decode_num_accepted_tokens_total", "Those that were right.",
         engine.drafts_taken, label);
  for (size_t place = 0; place < engine.draft_places.size(); ++place)
    render(out, "vllm:spec_decode_num_accepted_tokens_per_pos_total",
           place == 0 ? "The same by their place." : "", engine.draft_places[place],
           std::string(label) + "," + metric_label("position", std::to_string(place)));
  // The names of before 0.10, which some routers still read.
  render(out, "vllm:gpu_cache_usage_perc", "KV cache usage; 1 means full.", engine.kv_usage, label);
  render(out, "vllm:gpu_prefix_cache_queries_total", "Prompt tokens looked up.",
         engine.prefix_queries, label);
  render(out, "vllm:gpu_prefix_cache_hits_total", "Prompt tokens found.", engine.prefix_hits,
         label);
  const auto integer = [](const Gauge& gauge) {
    return std::to_string(static_cast<int64_t>(gauge.value()));
  };
  render(out, "vllm:cache_config_info", "The KV cache.", MetricType::kGauge, 1,
         std::string(label) + "," + metric_label("block_size", integer(engine.page_tokens)) + "," +
             metric_label("num_gpu_blocks", integer(engine.pages)));
  const std::string success(label);
  render(out, "vllm:request_success_total", "Choices by finish reason.", api.finished_stop,
         success + ",finished_reason=\"stop\"");
  render(out, "vllm:request_success_total", "", api.finished_length,
         success + ",finished_reason=\"length\"");
}

void render_server(std::string& out, const MetricsFacts& facts) {
  render(out, "weir_build_info", "What is running.", MetricType::kGauge, 1,
         metric_label("version", facts.version) + "," + metric_label("commit", facts.commit) + "," +
             metric_label("kernels", facts.kernels));
  const auto limit = [&](std::string_view name, std::string_view help, int64_t value) {
    render(out, name, help, MetricType::kGauge, static_cast<double>(value));
  };
  limit("weir_context_tokens_max", "Prompt and answer of one sequence together.",
        facts.context_max);
  limit("weir_requests_running_max", "Sequences that run at once.", facts.running_max);
  render(out, "weir_log_lines_dropped_total", "Lines of the log that found no room.",
         MetricType::kCounter, static_cast<double>(log::lines_dropped()));
  limit("weir_requests_open_max", "Requests that run or wait; more are refused.", facts.open_max);
}

// By the names that Prometheus's own client libraries use.
void render_process(std::string& out) {
  const ProcessUsage usage = process_usage();
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    render(out, name, help, MetricType::kGauge, value);
  };
  render(out, "process_cpu_seconds_total", "CPU time, of the user and of the system.",
         MetricType::kCounter, usage.cpu_s);
  gauge("process_resident_memory_bytes", "Memory.", static_cast<double>(usage.resident_bytes));
  gauge("process_virtual_memory_bytes", "Addresses.", static_cast<double>(usage.virtual_bytes));
  gauge("process_threads", "Threads.", usage.threads);
  gauge("process_open_fds", "Open files and sockets.", usage.open_files);
  gauge("process_max_fds", "Files and sockets that may be open.",
        static_cast<double>(usage.open_files_max));
  // Once: the system's clock may be set, and a start that moves looks like another process.
  static const double start_s = usage.start_s;
  gauge("process_start_time_seconds", "When the process began, since 1970.", start_s);
}

using KeyFigure = Counter Key::Figures::*;

}  // namespace

void render_keys(std::string& out, const Keyring& keys) {
  const auto each = [&](std::string_view name, std::string_view help, KeyFigure figure) {
    for (const auto& key : keys.keys())
      render(out, name, &key == keys.keys().data() ? help : "", key->figures().*figure,
             metric_label("key", key->name()));
  };
  each("weir_key_requests_total", "Requests by API key.", &Key::Figures::requests);
  each("weir_key_refused_total", "Requests over a limit of their API key.", &Key::Figures::refused);
  each("weir_key_tokens_total", "Tokens of prompts and answers by API key.", &Key::Figures::tokens);
}

std::string metrics_page(const ApiStats& api, const sched::EngineStats& engine,
                         const net::HttpStats* http, const MetricsFacts& facts) {
  std::string out;
  render_server(out, facts);
  render_process(out);
  render_engine(out, engine);
  render_api(out, api);
  if (http) render_http(out, *http);
  render_vllm(out, api, engine, metric_label("model_name", facts.model));
  return out;
}

}  // namespace weir::api
