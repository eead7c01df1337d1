// Options: everything the command line, the environment and a config file can say, in one table
// (options.cpp) of name, default, unit, group and help. `--help` and docs/options.md come from it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/access/manage.h"
#include "base/log.h"
#include "base/result.h"
#include "card/embedding_settings.h"
#include "kv/format.h"
#include "model/model.h"
#include "ssd/prefetcher.h"

namespace weir {

// The most tokens that a step may have.
inline constexpr int32_t kPrefillSizeMax = 8192;

enum class Command : uint8_t {
  kServe,
  kInfo,
  kBench,
  kPerplexity,
  kCalibrate,
  kPack,
  kQuantize,
  kPull,
  kList,
  kRm,
  kVerify,
  kSearch,
  kSuite,
  kHealth,
  kCache
};

// What closes thinking that has used up its budget. Cut off without a word, models go on thinking
// in their answer.
inline constexpr std::string_view kReasoningBudgetMessage =
    "\n\nThat is enough thinking. I will give the answer now.\n";

// How experts on disk are read.
enum class ExpertReads : uint8_t {
  kAuto,       // By io_uring and past the page cache, where the system allows it.
  kPread,      // By threads.
  kBuffered,   // By threads, through the page cache.
  kPageCache,  // The same, and they stay there; for `weir bench`.
};

// Parts of Options, for those that need no other.
struct ExpertOptions {
  bool stream_experts = false;
  int64_t expert_memory = 0;  // Bytes; 0: what is left.
  ssd::PrefetchMode ssd_prefetch = ssd::PrefetchMode::kAuto;
  ExpertReads ssd_io = ExpertReads::kAuto;
  std::string routing;        // "modelled[-one-topic]", or a route trace; empty: the model's own.
  std::string route_trace;    // File for what was routed; empty: none.
  std::string stream_budget;  // Numbers of token cycles, instead of expert_memory.
};

// Defaults of requests; without: generation_config.json's, else the API's.
struct SamplingOptions {
  std::optional<double> temp;
  std::optional<double> top_p;
  std::optional<int32_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repeat_penalty;
  std::optional<int32_t> repeat_last_n;
  std::optional<double> typical;
  std::optional<double> top_n_sigma, xtc_probability, xtc_threshold;
  std::optional<double> dynatemp_range, dynatemp_exp;
  std::optional<double> dry_multiplier, dry_base;
  std::optional<int32_t> dry_allowed_length, dry_penalty_last_n;
};

struct NetworkOptions {
  std::string host = "127.0.0.1";
  int32_t port = 5413;
  std::string unix_socket;
  std::string api_key;            // Several separated by commas.
  std::string api_key_file;       // A key a line, with limits.
  std::string tls_cert, tls_key;  // PEM files; both or none.
  std::string cors;
  std::string allowed_hosts;  // Names; several separated by commas.
  api::Manage manage = api::Manage::kAuto;
  bool ui = true;               // The web page.
  bool ollama = true;           // Ollama's endpoints.
  int32_t max_connections = 0;  // 0: what network_memory.cpp says.
  int64_t max_body = 0;         // Bytes; 0: what network_memory.cpp finds fit.
  int32_t idle_timeout = 120;   // Seconds.
  int32_t drain_seconds = 25;
  int32_t drain_delay = 0;  // Seconds.
};

struct BenchOptions {
  int32_t bench_prompt = 512;
  int32_t bench_decode = 128;
  std::string bench_batch = "1,2,4,8,16,32";
  std::string bench_depth = "8";
  int32_t repetitions = 5;
};

// `weir suite`.
struct SuiteOptions {
  std::string only;  // Parts; several separated by commas. Empty: all.
  bool quick = false;
  std::optional<double> hours;  // Of the soak.
  std::string url;              // Of a server that is there; empty: servers of its own.
  std::string json_report;      // Files; "-": standard output. Empty: none.
  std::string markdown_report;
  std::string old_report;  // A file of json_report; empty: nothing is compared.
  std::string lm_eval;     // Tasks of lm-evaluation-harness; empty: none.
  // What was said of options that a server takes too, wherever it was said: name and value.
  std::vector<std::pair<std::string, std::string>> passed_on;
};

struct HubOptions {
  bool offline = false;
  bool dry_run = false;
  std::vector<std::string> include;  // Patterns of paths; empty: what a model is.
};

struct SearchOptions {
  std::string words;   // Empty: the catalogue.
  std::string filter;  // A tag; empty: any.
  std::string sort = "downloads";
};

struct AdapterOptions {
  bool enable_lora = false;               // Also without: where lora_modules or lora_dir are said.
  std::vector<std::string> lora_modules;  // NAME=PATH, or {"name", "path"}.
  std::string lora_dir;                   // What requests may load; empty: nothing.
  int32_t max_loras = 8;
  int32_t max_cpu_loras = 0;  // 0: max_loras, or as many as lora_modules are.
  int32_t max_lora_rank = 16;

  bool takes_adapters() const { return enable_lora || !lora_modules.empty() || !lora_dir.empty(); }
  int32_t adapters_max() const {
    const auto given = static_cast<int32_t>(lora_modules.size());
    return max_cpu_loras > 0 ? max_cpu_loras : std::max(max_loras, given);
  }
};

// Which drafts steps have.
enum class Speculative : uint8_t {
  kAuto,  // What there is.
  kOff,
  kNgram,  // Copies of texts alone.
  kDraft,  // A drafter of one kind alone.
  kEagle3,
  kMtp,
  kDflash,
};

// Where layers have states, all sequences together have so many drafts in a step at most: rows of
// scratch are kept for as many, an eighth of a step's.
inline constexpr int32_t kStateDraftsMax = 64;

struct SpeculativeOptions {
  Speculative speculative = Speculative::kAuto;
  int32_t num_draft_tokens = 7;  // At most, of a sequence in a step.
  std::string draft_model;            // Folder of a drafter; empty: none, or the model's own.
  int32_t draft_bits = 4;             // Its matrices are held in so many; 0: as they are stored.
  int32_t draft_vocabulary = 32768;   // Tokens that it chooses among; 0: all.
};

// Images and sounds of requests.
struct MediaOptions {
  std::string allow_remote_media;  // Hosts (media_hosts.h), separated by commas; empty: none.
  std::string media_path;          // What file: addresses lead into; empty: nothing.
  int32_t max_images = 64;         // Of one request,
  int32_t max_sounds = 16;         // and of these.
  int64_t image_memory = 0;        // Bytes; 0: what network_memory.cpp finds fit.
};

// Several models in one process, which come and go.
struct ModelSetOptions {
  std::string models;          // File that names them; empty: there is one.
  bool autoload = true;        // Requests load what they need.
  int32_t idle_unload = 0;     // Seconds after its last use; 0: never.
  int32_t load_timeout = 300;  // Seconds.
  int32_t load_stay = 10;      // Seconds.
};

struct Options : ExpertOptions,
                 AdapterOptions,
                 SamplingOptions,
                 NetworkOptions,
                 BenchOptions,
                 HubOptions,
                 SearchOptions,
                 SpeculativeOptions,
                 SuiteOptions,
                 MediaOptions,
                 ModelSetOptions {
  Command command = Command::kServe;

  // Model.
  // Folder, GGUF file or a name of the hub (program/model_source.h); empty: the model compiled into
  // the binary.
  std::string model;
  int32_t quantize = 0;  // Bits of float weights in memory; 0: as they are stored.
  std::string alias;     // Names, separated by commas; "*": any. Empty: the folder's name.
  int32_t ctx_size = 0;  // Positions of one sequence; 0: the model's own, or what fits.
  model::Compute compute = model::Compute::kFast;
  std::optional<kv::Format> kv_cache;        // Absent: f16 with --compute fast, f32 with exact.
  bool turbo_kv = false;                     // tq4, in fewer letters.
  std::vector<std::string> config_override;  // KEY=VALUE each.
  std::string chat_template;                 // File that replaces the model's template.
  bool trust_request_template = false;       // Requests may bring a chat template.
  std::string tool_parser = "auto";
  std::optional<bool> thinking;   // Absent: as the chat template has it.
  int32_t reasoning_budget = -1;  // Tokens; -1: any number.
  std::string reasoning_budget_message{kReasoningBudgetMessage};
  std::string reasoning_format = "auto";
  std::optional<card::Pooling> pooling;  // Absent: as the model's files say.
  std::string reranker = "auto";

  // Machine.
  int32_t threads = 0;                      // 0: the cores that this process may use.
  std::optional<kernels::Isa> isa;          // Absent: the best.
  int64_t mem_limit = 0;                    // Bytes; 0: what the machine or the cgroup has free.
  int64_t kv_memory = 0;                    // Bytes; 0: planned from what is left.
  int64_t disk_reserve = int64_t{5} << 30;  // Bytes that stay free.

  // Scheduling.
  int32_t parallel = 0;  // Sequences that decode at once; 0: what memory holds.
  int32_t queue = 1024;
  int32_t queue_timeout = 60;   // Seconds; 0: none.
  int32_t request_timeout = 0;  // Seconds; 0: none.
  int32_t prefill_size = 512;
  std::optional<double> max_step_ms;
  bool prefix_cache = true;
  int32_t cache_idle = 1800;  // Seconds; 0: for ever.

  // Answers.
  int32_t max_tokens = 2048;
  int32_t max_prompt_tokens = 0;
  int64_t responses_store = -1;  // Bytes; 0: off; -1: what memory_plan.cpp finds fit.
  std::string config;            // File with options.
  bool json = false;             // Of commands: JSON instead of a table.

  log::Level log_level = log::Level::kInfo;
  log::Format log_format = log::Format::kText;
  std::string log_file;  // Empty: standard error.
  std::string trace;     // File for a trace of what the threads did; empty: none.

  // `weir perplexity`.
  std::string file;
  int32_t ctx = 0;
  int32_t tokens = 0;   // Of the text; 0: all.
  std::string against;  // A model to compare with; empty: none.
  // The same model with keys and values in this format, to compare with.
  std::optional<kv::Format> against_kv;

  // `weir pack`.
  std::string output;  // Empty: the model's folder, or the cache.

  // `weir quantize`.
  std::string to;  // The folder that is written.
  int32_t bits = 4;
  int32_t group = 64;
  std::vector<std::string> rule;  // REGEX=BITS:GROUP or REGEX=skip.
  std::string like;               // A folder whose config.json says the numbers; empty: none.

  int64_t image_cache = int64_t{512} << 20;  // Features of media, of a model that takes them.

  // The prompt cache on disk, and `weir cache`.
  int64_t disk_cache = 0;      // Bytes; 0: there is none.
  std::string disk_cache_dir;  // Empty: a folder of the user's caches.
  std::string cache_action = "list";
};

// What main() should do after parsing.
struct ParsedOptions {
  Options options;
  std::string print;  // --help or --version: print this and exit with 0.
};

// Reads `argv`, the environment (WEIR_...) and --config FILE (option_parser.cpp); the command line
// wins over the environment, that over the file. An unknown flag's error names the nearest known
// one, or what there is instead (foreign_options.h).
Result<ParsedOptions> parse_options(int argc, const char* const* argv);

// The words of a command line that says of `command` what Options::passed_on holds, as far as that
// command takes it.
std::vector<std::string> words_passed_on(const Options& options, Command command);

// Errors name the option, what was expected and what was found (options_check.cpp).
Result<void> check_options(const Options& options);

// An option that is the default of a request's number, and which one.
struct SamplingOption {
  const char* flag;
  std::string_view field;
  std::optional<double> value;
};
std::vector<SamplingOption> sampling_options(const SamplingOptions& options);

// As they are written on the command line.
std::string_view word_of(model::Compute compute);
std::string_view word_of(ssd::PrefetchMode mode);
std::string_view word_of(Speculative speculative);

// The parts of "a, b": trimmed, empty ones left out.
std::vector<std::string> split_list(std::string_view list);

// The reference page of all options, in Markdown; a test keeps docs/options.md equal to it.
std::string options_page();

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace weir
