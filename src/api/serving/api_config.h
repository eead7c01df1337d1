// ApiConfig: what the composition root knows of the model, the machinery and the policy. It is
// complete when the Api gets it, and nothing of it changes afterwards; what the Api makes of it is
// a ServingContext.
//
// Threads: any; a plain value, const from the Api's construction on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/access/entrance.h"
#include "api/access/keys.h"
#include "api/request/generation_defaults.h"
#include "api/request/message_content.h"
#include "api/serving/expert_counts.h"
#include "api/serving/hub_desk.h"
#include "api/serving/media_desk.h"
#include "api/serving/model_search.h"
#include "api/serving/rerank_config.h"
#include "api/serving/speech_config.h"
#include "card/embedding_settings.h"
#include "media/features/front_end.h"
#include "media/processor/processor.h"
#include "net/loop.h"
#include "sched/engine_handle.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weir::api {

class Adapters;

// What the pages about the model show.
struct ModelFacts {
  int32_t context_trained = 0;  // Positions that the model was made for.
  int32_t hidden_size = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;      // Of the weights in memory.
  std::string formats{};  // "4-bit g32 79 %, 8-bit g32 21 %"
  std::string family{};   // The model_type of config.json: "qwen3".
  std::string files{};    // "safetensors" or "gguf".
  std::string digest{};   // 64 hexadecimal digits; others when the model is another.
  int64_t modified = 0;   // When its files were written, in seconds since the epoch.
  int32_t layers = 0;
  int32_t heads = 0, kv_heads = 0;  // Of the first layer that attends; 0: none does.
  bool embeds = false;              // It was made for embeddings.
};

// How many images and sounds there may be, how large, and from where.
struct MediaLimits {
  int32_t images_max = 64;                        // Of one request.
  size_t image_file_bytes_max = size_t{32} << 20;  // Of one file.
  int64_t pixels_max = int64_t{64} << 20;         // Of one image.
  // Of one file: two minutes of what telephones record by default (1080p, 60 MB a minute).
  size_t video_file_bytes_max = size_t{128} << 20;
  int32_t sounds_max = 16;                        // Of one request.
  // Of one file. Half a minute, the most that encoders take at once, has 46 MB where studios record
  // it: 192 kHz, two channels, 32 bits.
  size_t sound_file_bytes_max = size_t{48} << 20;
  size_t bytes_max = size_t{1} << 30;             // Memory of all that are read (memory_cost.h).
  std::string folder{};                           // Where file: leads; empty: nowhere.
};

// What the composition root knows. Pointers are borrowed and outlive the Api.
struct ApiConfig {
  // --- The model.
  std::string model_id{};              // As /v1/models names it.
  std::vector<std::string> aliases{};  // Other names that requests may use.
  // Of model_id and aliases those that a person gave it (--alias): pages and errors show them.
  std::vector<std::string> given_names{};
  bool any_name = false;                // Requests may call it as they like.
  int64_t created = 0;                  // Seconds since the epoch.
  int32_t context_max = 0;              // Positions of one sequence, prompt and output.
  int32_t vocab_size = 0;               // Rows of logits; ids beyond are refused.
  int32_t hidden_size = 0;              // Of an embedding.
  card::EmbeddingSettings embedding{};  // The model's, or as --pooling says.
  RerankConfig rerank{};                // The model's, or as --reranker says.
  ModelFacts facts{};
  GenerationDefaults defaults{};  // Merged with the command line; eos_ids included.
  const text::Tokenizer* tokenizer = nullptr;
  const text::ChatTemplate* chat_template = nullptr;      // Nullptr: /v1/chat/completions refuses.
  const text::ChatTemplate* tool_use_template = nullptr;  // For conversations with tools, if any.
  std::string chat_template_source{};                     // For /props.
  std::vector<std::string> config_overrides{};            // For /props: "KEY=VALUE" each.
  // `bos_token` and friends: variables of every template.
  std::vector<std::pair<std::string, std::string>> special_tokens{};

  // What the model wants of an image; null: it sees none, because:
  const media::Processor* processor = nullptr;
  std::string images_refusal = "it has no vision tower";
  // The same of a sound.
  const media::FrontEnd* front_end = nullptr;
  std::string sounds_refusal = "it has no encoder of sounds";

  // Of a model that writes down what is said; none: it does not, because:
  std::optional<SpeechConfig> speech{};
  std::string speech_refusal = "it is no speech model";

  // How the model writes calls and reasoning: names of formats, or what the template says.
  std::string tool_parser = "auto";        // Also "none".
  std::string reasoning_format = "auto";   // Also "none" and "deepseek".
  bool trust_request_template = false;     // Requests may bring a chat template.
  std::optional<bool> thinking{};          // Of requests that do not say; absent: the template's.
  int32_t reasoning_budget = -1;           // Of requests that do not say: tokens; -1: any number.
  std::string reasoning_budget_message{};  // What closes thinking that has used them up.
  bool drafts_copies = false;              // Answers may be drafted from texts (sched::TextIndex).

  // --- The machinery. What a request may hold is also bounded by engine->max_tokens_fit().
  sched::EngineHandle* engine = nullptr;
  net::Loop* loop = nullptr;
  Adapters* adapters = nullptr;  // Null: the model takes none.
  ExpertCounter experts{};       // Empty: they are in memory, or there are none.
  ModelSearcher search_models{};  // Empty: models are not searched for.
  HubDesk* hub = nullptr;         // Null: none are fetched or deleted.
  MediaDesk* media = nullptr;     // Null: nothing is fetched from web addresses.

  // --- Policy.
  int32_t parallel = 0;             // Sequences that run at once, for pages.
  int64_t memory_limit = 0;         // Of the process, in bytes, for pages; 0: not known.
  double queue_timeout_s = 0;       // A request that has waited so long is refused; 0: never.
  double request_timeout_s = 0;     // An answer that takes so long ends with an error; 0: never.
  std::vector<KeySpec> api_keys{};  // Empty: everybody may.
  std::vector<std::string> cors_origins{};  // "*": any. Empty: no CORS headers.
  EntranceConfig entrance{};                // Who may manage the server.
  bool ui = true;                           // The web page is served.
  bool ollama = true;                       // Ollama's endpoints are there.
  // Tokens of a chat answer whose request names no limit; 0: what the context leaves.
  int32_t max_tokens_default = 0;
  int32_t prompt_max = 0;                  // Most tokens of a prompt; 0: what the context allows.
  int32_t preparing_max = 1024;            // Requests waiting to be prepared and being prepared,
  size_t preparing_bytes_max = 256 << 20;  // and their memory (memory/memory_cost.h).
  size_t log_bytes_max = size_t{1} << 30;  // Memory for the token logs of all open requests.
  size_t responses_bytes_max = 64 << 20;   // Stored responses; 0: none are stored.
  MediaLimits media_limits{};              // Images and sounds of requests.
  size_t automata_bytes_max = 64 << 20;    // Compiled grammars, kept for the next request.
  size_t stream_pause_bytes = 64 << 10;    // As HttpLimits.
  uint64_t keep_alive_ms = 15'000;         // Silence after which a stream gets a comment.
  int32_t retry_after_s = 1;               // What 429 and 503 advise.
  std::string version{};                   // "0.1.0"
  std::string commit{};                    // What it was built from, as git describes it.
  std::string kernels{};                   // The instruction set in use: "avx512"
};

// What stands for media in a prompt before it is known how many tokens they take.
inline MediaMarks media_marks(const ApiConfig& config) {
  MediaMarks marks;
  if (config.processor != nullptr) marks.image = config.processor->placeholder.prompt;
  if (config.front_end != nullptr) marks.sound = config.front_end->placeholder.prompt;
  return marks;
}

// What a template writes where a medium is; empty: the model takes none of them.
inline std::string_view mark_of(const ApiConfig& config, Medium medium) {
  if (medium != Medium::kVideo) return media_marks(config).of(medium);
  return config.processor == nullptr ? std::string_view() : config.processor->video.prompt;
}

// What stands for one row of a medium's features; empty: the model takes none of them.
inline std::string_view row_text(const ApiConfig& config, Medium medium) {
  if (medium == Medium::kSound)
    return config.front_end == nullptr ? std::string_view() : config.front_end->placeholder.sound;
  if (config.processor == nullptr) return {};
  return medium == Medium::kVideo ? config.processor->video.image
                                  : config.processor->placeholder.image;
}

}  // namespace weir::api
