#include "api/pages/dashboard.h"

#include <algorithm>
#include <ctime>

#include "base/process_usage.h"

namespace weir::api::pages {

namespace {

std::string event_of(const std::string& json) { return "data: " + json + "\n\n"; }

}  // namespace

Dashboard::Counts Dashboard::counts_of(const Histogram& histogram) {
  Counts counts{};
  for (int bucket = 0; bucket < Histogram::kBuckets; ++bucket)
    counts[static_cast<size_t>(bucket)] = histogram.cumulative(bucket);
  counts.back() = histogram.count();
  return counts;
}

Dashboard::Sample Dashboard::take(const Model& model) {
  const sched::EngineStats& engine = model.config.engine->stats();
  return {.at = std::chrono::steady_clock::now(),
          .steps = engine.steps.value(),
          .output_tokens = engine.generated_tokens.value(),
          .prompt_tokens = engine.prompt_tokens.value(),
          .looked_up = engine.prefix_queries.value(),
          .found = engine.prefix_hits.value(),
          .first_token = counts_of(model.times.first_token),
          .gap = counts_of(model.times.inter_token),
          .step = counts_of(engine.step_time),
          .experts = model.config.experts ? model.config.experts() : ExpertCounts{}};
}

// [p50, p95] in milliseconds, null where nothing was observed. Between the bounds of a bucket its
// observations are taken to lie evenly; beyond the last bound they count as that bound.
void Dashboard::write_quantiles(JsonWriter& json, const Counts& from, const Counts& to) {
  static const Histogram kBounds;
  const uint64_t total = to.back() - from.back();
  if (total == 0) {
    json.null();
    return;
  }
  json.begin_array();
  for (const double share : {0.5, 0.95}) {
    const double rank = share * static_cast<double>(total);
    double below = 0, lower = 0, value = kBounds.upper_bound(Histogram::kBuckets - 1);
    for (int bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
      const auto i = static_cast<size_t>(bucket);
      const auto upto = static_cast<double>(to[i] - from[i]);
      const double upper = kBounds.upper_bound(bucket);
      if (upto >= rank) {
        value = lower + (upper - lower) * (rank - below) / std::max(upto - below, 1.0);
        break;
      }
      below = upto;
      lower = upper;
    }
    json.value(value * 1e3);
  }
  json.end_array();
}

void Dashboard::write_experts(JsonWriter& json, const Sample& from, const Sample& to,
                              double seconds) {
  const uint64_t asked = to.experts.asked - from.experts.asked;
  const uint64_t tokens = to.experts.tokens - from.experts.tokens;
  const auto by = [](uint64_t part, uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  json.begin_object().key("hit");
  if (asked == 0)
    json.null();
  else
    json.value(by(to.experts.found - from.experts.found, asked));
  const uint64_t bytes = to.experts.read_bytes - from.experts.read_bytes;
  json.field("gbps", static_cast<double>(bytes) * 1e-9 / seconds);
  json.key("stall_ms_token");
  if (tokens == 0)
    json.null();
  else
    json.value(by(to.experts.stall_ns - from.experts.stall_ns, tokens) * 1e-6);
  json.end_object();
}

// A model that was unloaded and loaded again has begun to count anew.
const Dashboard::History* Dashboard::history(const std::string& model, uint64_t steps) const {
  const auto found = std::ranges::find(histories_, model, &History::model);
  return found == histories_.end() || found->samples.back().steps > steps ? nullptr : &*found;
}

void Dashboard::write_model(JsonWriter& json, const Model& model, double oldest_wait_s) const {
  const sched::EngineStats& engine = model.config.engine->stats();
  const Sample now = take(model);
  const History* known = history(model.config.model_id, now.steps);
  const Sample& from = known != nullptr ? known->samples.front() : now;
  // The first second's rates would be noise.
  const double seconds = std::max(std::chrono::duration<double>(now.at - from.at).count(), 1.0);
  const auto rate = [&](uint64_t after, uint64_t before) {
    return static_cast<double>(after - before) / seconds;
  };
  const uint64_t looked_up = now.looked_up - from.looked_up;
  json.begin_object().field("id", model.config.model_id);
  json.field("state", model.draining ? "draining" : "ready");
  json.field("running", static_cast<int64_t>(engine.running.value()));
  json.field("waiting", static_cast<int64_t>(engine.waiting.value()));
  json.field("oldest_wait_s", oldest_wait_s);
  json.field("output_tok_s", rate(now.output_tokens, from.output_tokens));
  json.field("prompt_tok_s", rate(now.prompt_tokens, from.prompt_tokens));
  json.key("cached_share");
  if (looked_up == 0)
    json.null();
  else
    json.value(static_cast<double>(now.found - from.found) / static_cast<double>(looked_up));
  json.field("kv_use", engine.kv_usage.value());
  json.field("kv_bytes", static_cast<int64_t>(engine.kv_taken.value()));
  json.field("weight_bytes", model.config.facts.bytes);
  write_quantiles(json.key("ttft_ms"), from.first_token, now.first_token);
  write_quantiles(json.key("gap_ms"), from.gap, now.gap);
  write_quantiles(json.key("step_ms"), from.step, now.step);
  if (model.config.experts) write_experts(json.key("experts"), from, now, seconds);
  json.key("limits").begin_object();
  json.field("running", model.config.parallel).field("open", model.config.engine->queue_max());
  json.field("context", model.context_max).end_object();
  json.end_object();
}

std::string Dashboard::figures(const Source& source) const {
  const ProcessUsage usage = process_usage();
  const std::time_t clock = std::time(nullptr);
  int64_t limit = 0;
  for (const Model& model : source.models) limit = std::max(limit, model.config.memory_limit);

  std::string out;
  JsonWriter json(out);
  json.begin_object().field("t", static_cast<int64_t>(clock));
  json.field("uptime_s", static_cast<int64_t>(static_cast<double>(clock) - usage.start_s));
  json.field("rss", usage.resident_bytes);
  if (limit > 0) json.field("limit", limit);
  json.key("models").begin_array();
  for (const Model& model : source.models)
    write_model(json, model, source.api.oldest_waiting.value());
  json.end_array().key("pulls").begin_array();
  for (const Pull& pull : source.pulls)
    json.begin_object()
        .field("model", pull.model)
        .field("bytes", pull.bytes)
        .field("bytes_done", pull.bytes_done)
        .end_object();
  json.end_array().key("http").begin_object();
  json.field("open", source.http ? static_cast<int64_t>(source.http->open_connections.value()) : 0);
  json.field("c2xx", source.api.answered_2xx.value());
  json.field("c4xx", source.api.answered_4xx.value());
  json.field("c5xx", source.api.answered_5xx.value());
  json.end_object().end_object();
  return out;
}

void Dashboard::tick(const Source& source) {
  std::vector<History> kept;
  for (const Model& model : source.models) {
    Sample now = take(model);
    const History* before = history(model.config.model_id, now.steps);
    History& after = kept.emplace_back(before != nullptr ? *before : History{});
    after.model = model.config.model_id;
    after.samples.push_back(now);
    if (after.samples.size() > kWindowS + 1) after.samples.pop_front();
  }
  histories_ = std::move(kept);
  std::erase_if(listeners_, [](const ExchangePtr& each) { return each->responder().closed(); });
  if (listeners_.empty()) return;
  const std::string event = event_of(figures(source));
  // A listener that has not read the last one misses this one.
  for (const ExchangePtr& each : listeners_)
    if (each->responder().queued_bytes() == 0) each->responder().write(event);
}

void Dashboard::listen(const ExchangePtr& exchange, const Source& source) {
  std::erase_if(listeners_, [](const ExchangePtr& each) { return each->responder().closed(); });
  if (listeners_.size() >= kListenersMax)
    return exchange->respond_error(
        Error{ErrorCode::kUnavailable, "The dashboard has " + std::to_string(kListenersMax) +
                                           " listeners, which is as many as there may be."});
  exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
    if (const ExchangePtr left = weak.lock()) left->abandon();
  });
  exchange->start_stream("text/event-stream; charset=utf-8");
  exchange->responder().write(event_of(figures(source)));
  listeners_.push_back(exchange);
}

void Dashboard::end() {
  for (const ExchangePtr& each : listeners_)
    if (!each->responder().closed()) each->end_stream();
  listeners_.clear();
}

}  // namespace weir::api::pages
