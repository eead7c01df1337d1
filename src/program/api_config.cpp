#include "program/api_config.h"

#include <algorithm>
#include <ctime>

#include "api/media/media_memory.h"
#include "program/commit.h"
#include "program/draft_sources.h"
#include "program/model_facts.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

void set_names(api::ApiConfig& config, const Options& options, const card::ModelFiles& files) {
  config.given_names = split_list(options.alias);
  config.any_name = std::erase(config.given_names, "*") > 0;
  config.model_id = config.given_names.empty() ? files.name() : config.given_names.front();
  config.aliases = {files.name(), "default"};
  config.aliases.insert(config.aliases.end(), config.given_names.begin(), config.given_names.end());
  if (!files.path().empty()) config.aliases.push_back(files.path());
}

void set_text(api::ApiConfig& config, const TextParts& text) {
  config.embedding = text.embedding;
  config.rerank = text.rerank;
  config.defaults = text.defaults;
  config.tokenizer = text.tokenizer.get();
  if (text.chat_template) config.chat_template = &*text.chat_template;
  if (text.tool_use_template) config.tool_use_template = &*text.tool_use_template;
  if (text.processor) config.processor = &*text.processor;
  if (!text.images_refusal.empty()) config.images_refusal = text.images_refusal;
  if (text.front_end && !text.front_end->placeholder.prompt.empty())
    config.front_end = &*text.front_end;
  else if (text.front_end)
    config.sounds_refusal = "it writes down what it hears, at /v1/audio/transcriptions";
  else if (!text.sounds_refusal.empty())
    config.sounds_refusal = text.sounds_refusal;
  config.speech = text.speech;
  if (!text.speech_refusal.empty()) config.speech_refusal = text.speech_refusal;
  config.chat_template_source = text.chat_template_source;
}

void set_thinking(api::ApiConfig& config, const Options& options) {
  config.tool_parser = options.tool_parser;
  config.reasoning_format = options.reasoning_format;
  config.trust_request_template = options.trust_request_template;
  config.thinking = options.thinking;
  config.reasoning_budget = options.reasoning_budget;
  config.reasoning_budget_message = options.reasoning_budget_message;
}

// But for what the sockets say.
void set_entrance(api::ApiConfig& config, const Options& options) {
  config.cors_origins = split_list(options.cors);
  config.ui = options.ui;
  config.entrance.manage = options.manage;
  config.ollama = options.ollama;
  config.entrance.any_host = std::ranges::count(split_list(options.allowed_hosts), "*") > 0;
}

template <class Plan>
void set_memory(api::ApiConfig& config, const Plan& plan) {
  config.log_bytes_max = static_cast<size_t>(plan.request_bytes);
  config.responses_bytes_max = static_cast<size_t>(plan.responses_bytes);
  config.preparing_bytes_max = static_cast<size_t>(plan.bodies.preparing);
  config.media_limits.bytes_max = static_cast<size_t>(plan.image_bytes);
  config.media_limits.pixels_max =
      std::min(config.media_limits.pixels_max, api::pixels_within(config.media_limits.bytes_max));
}

api::ExpertCounts expert_counts(const ssd::ExpertStore& store) {
  const ssd::StoreStats& stats = store.stats();
  api::ExpertCounts counts{
      .asked = stats.ready.value() + stats.in_flight.value() + stats.absent.value(),
      .found = stats.ready.value(),
      .stall_ns = stats.stall_ns.value(),
      .tokens = stats.tokens.value()};
  for (const Counter& bytes : store.reads().bytes) counts.read_bytes += bytes.value();
  return counts;
}

void set_policy(api::ApiConfig& config, const Options& options) {
  set_entrance(config, options);
  config.created = std::time(nullptr);
  config.prompt_max = options.max_prompt_tokens;
  config.queue_timeout_s = options.queue_timeout;
  config.request_timeout_s = options.request_timeout;
  config.max_tokens_default = options.max_tokens;
  config.media_limits.images_max = options.max_images;
  config.media_limits.sounds_max = options.max_sounds;
  config.media_limits.folder = options.media_path;
  config.version = kVersion;
  config.commit = commit();
}

}  // namespace

api::ApiConfig process_config(const Options& options, const ProcessPlan& plan) {
  api::ApiConfig config;
  set_policy(config, options);
  set_memory(config, plan);
  return config;
}

api::ApiConfig api_config(const Options& options, const ModelChoice& choice,
                          const model::Model& model, const MemoryPlan& plan,
                          const TextParts& text) {
  api::ApiConfig config;
  set_names(config, options, choice.model_card.files);
  set_text(config, text);
  set_thinking(config, options);
  config.drafts_copies = drafts_copies(options);
  set_policy(config, options);
  set_memory(config, plan);
  config.automata_bytes_max = static_cast<size_t>(plan.automata_bytes);
  config.special_tokens = choice.model_card.tokenizer.special_tokens;
  config.config_overrides = options.config_override;
  config.context_max = plan.context_max;
  config.vocab_size = model.spec().vocab_size;
  config.hidden_size = model.spec().hidden_size;
  config.facts = model_facts(choice.model_card, model);
  config.parallel = plan.parallel;
  config.memory_limit = plan.limit;
  if (const ssd::ExpertStore* store = model.experts())
    config.experts = [store] { return expert_counts(*store); };
  config.kernels = kernels::isa_name(choice.isa);
  return config;
}

}  // namespace weir
