#include "program/start_report.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "api/request/sampling_fields.h"
#include "base/byte_size.h"
#include "base/log.h"
#include "program/allocator.h"
#include "program/draft_sources.h"
#include "program/expert_streaming.h"
#include "program/kv_formats.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

std::string_view note_of(Use use) {
  switch (use) {
    case Use::kChats:
      return "";
    case Use::kCompletions:
      return " (no chat template: only /v1/completions)";
    case Use::kTranscriptions:
      return " (it transcribes: only /v1/audio/transcriptions and /v1/audio/translations)";
  }
  return {};
}

void log_model(const Options& options, const ModelChoice& choice, const model::Model& model,
               const TextParts& text) {
  const model::ModelSpec& spec = model.spec();
  log::info("model " + choice.model_card.files.name() + " family=" + spec.family + " weights='" +
            model.memory().formats + "' layers=" + std::to_string(model::layer_count(spec)) +
            " width=" + std::to_string(spec.hidden_size) +
            " vocab=" + std::to_string(spec.vocab_size) +
            std::string(note_of(use_of(text))));
  for (const std::string& change : options.config_override)
    log::warn("model config.json is overridden: " + change);
  log::info("kernels isa=" + std::string(kernels::isa_name(choice.isa)) +
            " threads=" + std::to_string(choice.threads) +
            " compute=" + std::string(word_of(choice.compute)) + " kv=" + choice.kv_format.name() +
            " processor='" + kernels::processor_name() + "' malloc='" + allocator_name() + "'");
  log::info("sampling " + api::describe(text.defaults));
  std::string ends;
  for (const int32_t id : text.defaults.eos_ids) ends.append(" ").append(text.tokenizer->piece(id));
  log::info("answers end at" + (ends.empty() ? " their limit: no end token is known" : ends));
}

void log_experts(const model::Model& model) {
  const ssd::ExpertStore* store = model.experts();
  if (store == nullptr) return;
  log::info("experts " + expert_summary(model, store->plan()) + " (" + std::string(store->mode()) +
            ", from " + expert_source(model) + ")");
  const std::string warning = expert_warning(store->plan());
  if (!warning.empty()) log::warn("experts " + warning);
}

void log_memory(const MemoryPlan& plan) {
  std::string taken, most;
  for (const MemoryLine& line : plan.lines) {
    const auto list = [&line](std::string& text, int64_t bytes) {
      if (bytes > 0) text += (text.empty() ? "" : ", ") + line.what + " " + human_bytes(bytes);
    };
    list(taken, line.taken);
    list(most, line.bytes - line.taken);
  }
  log::info("memory taken " + human_bytes(plan.taken) + " (" + taken + "); at most " +
            human_bytes(plan.total) + " of " + human_bytes(plan.limit) + " (" + plan.limit_from +
            "), as it is used: " + most);
  if (const std::string note = context_note(plan); !note.empty()) log::info(note);
}

void log_limits(const Options& options, const MemoryPlan& plan) {
  if (plan.state_bytes > 0 && plan.checkpoints == 0 && options.prefix_cache)
    log::info(
        "prefix cache: off, because no checkpoints of states fit into a quarter of the memory "
        "for keys, values and states, or beside a whole context");
  log::info("limits context=" + std::to_string(plan.context_max) +
            " parallel=" + std::to_string(plan.parallel) +
            " kv_tokens=" + std::to_string(int64_t{plan.kv_pages} * kernels::kPageTokens) +
            " queue=" + std::to_string(options.queue) +
            " prefill=" + std::to_string(options.prefill_size));
}

// "http://127.0.0.1:5413".
std::string base_url(const Options& options, uint16_t port) {
  const bool ipv6 = options.host.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + options.host + "]" : options.host;
  return (options.tls_cert.empty() ? "http://" : "https://") + host + ":" + std::to_string(port);
}

void print_greeting(const std::string& base_url, bool with_key, Use use) {
  const char* key = with_key ? " -H 'Authorization: Bearer YOUR_KEY'" : "";
  if (use == Use::kTranscriptions) {
    std::printf("\nWeir is ready: %s/v1\n\n  curl %s/v1/audio/transcriptions%s -F file=@speech.wav\n\n",
                base_url.c_str(), base_url.c_str(), key);
    std::fflush(stdout);
    return;
  }
  const bool chats = use == Use::kChats;
  const char* path = chats ? "chat/completions" : "completions";
  const char* body =
      chats ? "{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a short story.\"}]}"
            : "{\"prompt\": \"Once upon a time\", \"max_tokens\": 50}";
  std::printf(
      "\nWeir is ready: %s/v1\n\n"
      "  curl %s/v1/%s%s -H 'Content-Type: application/json' \\\n"
      "    -d '%s'\n\n",
      base_url.c_str(), base_url.c_str(), path, key, body);
  std::fflush(stdout);
}

}  // namespace

Use use_of(const TextParts& text) {
  if (text.speech) return Use::kTranscriptions;
  return text.chat_template ? Use::kChats : Use::kCompletions;
}

void log_start(const Options& options, const ModelChoice& choice, const model::Model& model,
               const MemoryPlan& plan, const TextParts& text) {
  log_model(options, choice, model, text);
  log_experts(model);
  log_memory(plan);
  log_limits(options, plan);
  if (const std::string note = format_note(model, choice.kv_format); !note.empty()) log::info(note);
  log::info("speculation " + describe_drafts(options, model));
}

void announce(const Options& options, uint16_t port, std::chrono::steady_clock::duration startup,
              Use use, bool with_key) {
  const std::string base = port == 0 ? "Unix sockets" : base_url(options, port);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", std::chrono::duration<double>(startup).count());
  log::info("server ready in " + std::string(seconds) + " s at " + base +
            (options.unix_socket.empty() ? "" : " and unix:" + options.unix_socket));
  log::flush(std::chrono::milliseconds(100));  // On a terminal the greeting stands after it.
  if (port != 0) print_greeting(base, with_key, use);
}

}  // namespace weir
