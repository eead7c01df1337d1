#include "api/pages/server_pages.h"

#include <algorithm>
#include <tuple>

#include "api/request/sampling_fields.h"
#include "api/serving/breaker_store.h"
#include "base/json.h"

namespace weir::api::pages {

namespace {

std::string_view special_token(const ApiConfig& config, std::string_view name) {
  for (const auto& [key, text] : config.special_tokens)
    if (key == name) return text;
  return {};
}

void write_defaults(JsonWriter& json, const ApiConfig& config) {
  json.begin_object();
  for (const SamplingNumber& number : sampling_numbers())
    write_value(json.key(number.name), number, config.defaults.sampling);
  json.key("dry_sequence_breakers").begin_array();
  for (const std::string& text : default_breakers()) json.value(text);
  json.end_array();
  json.field("n_predict", config.max_tokens_default > 0 ? config.max_tokens_default : -1);
  json.end_object();
}

// An entry of /slots; `request` is null for a free place.
void write_slot(JsonWriter& json, size_t id, int32_t tokens_max, const OpenRequest* request) {
  json.begin_object().field("id", static_cast<int64_t>(id)).field("n_ctx", tokens_max);
  json.field("is_processing", request && request->begun);
  if (request) {
    json.field("id_task", request->id).field("priority", request->priority);
    json.field("n_prompt_tokens", request->prompt_tokens).field("age_seconds", request->age_s);
    json.key("next_token").begin_object();
    json.field("has_next_token", request->output_tokens < request->max_tokens);
    json.field("n_decoded", request->output_tokens);
    json.field("n_remain", request->max_tokens - request->output_tokens);
    json.end_object();
  }
}

}  // namespace

std::string props_page(const ApiConfig& config, int32_t tokens_max) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("default_generation_settings").begin_object();
  json.key("params");
  write_defaults(json, config);
  json.field("n_ctx", tokens_max).end_object();
  json.field("total_slots", config.parallel).field("model_alias", config.model_id);
  // The name, not the path: clients have no business with the server's folders.
  json.field("model_path", config.model_id).field("model_ftype", config.facts.formats);
  json.key("modalities").begin_object();
  json.field("vision", config.processor != nullptr).field("audio", config.front_end != nullptr);
  json.field("video", false).end_object();
  json.field("endpoint_slots", true).field("endpoint_props", false);
  json.field("endpoint_metrics", true);
  json.field("chat_template", config.chat_template_source);
  if (!config.config_overrides.empty()) {
    json.key("config_overrides").begin_array();
    for (const std::string& change : config.config_overrides) json.value(change);
    json.end_array();
  }
  json.field("bos_token", special_token(config, "bos_token"));
  json.field("eos_token", special_token(config, "eos_token"));
  json.field("build_info", "weir-" + config.version).field("is_sleeping", false);
  json.end_object();
  return body;
}

std::string tokenizer_page(const ApiConfig& config) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  const auto text_or_null = [&](std::string_view name, std::string_view text) {
    json.key(name);
    if (text.empty())
      json.null();
    else
      json.value(text);
  };
  for (const char* name : {"bos_token", "eos_token", "pad_token"})
    text_or_null(name, special_token(config, name));
  text_or_null("chat_template", config.chat_template_source);
  json.end_object();
  return body;
}

std::string slots_page(const ApiConfig& config, int32_t tokens_max, std::vector<OpenRequest> open) {
  // Those that run, then those that wait, by priority and arrival.
  std::ranges::sort(open, {}, [](const OpenRequest& r) {
    return std::tuple(!r.begun, r.begun ? 0 : r.priority, r.id);
  });
  const auto running = static_cast<size_t>(std::ranges::count_if(open, &OpenRequest::begun));
  const size_t places = std::max(running, static_cast<size_t>(std::max(config.parallel, 0)));
  std::string body;
  JsonWriter json(body);
  json.begin_array();
  for (size_t i = 0; i < places; ++i) {
    write_slot(json, i, tokens_max, i < running ? &open[i] : nullptr);
    json.end_object();
  }
  for (size_t i = running; i < open.size(); ++i) {
    write_slot(json, places + i - running, tokens_max, &open[i]);
    json.field("queue_position", static_cast<int64_t>(i - running + 1)).end_object();
  }
  json.end_array();
  return body;
}

}  // namespace weir::api::pages
