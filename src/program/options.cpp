#include "program/options.h"

#include <algorithm>
#include <array>

#include "program/commit.h"
#include "program/foreign_options.h"
#include "program/option_table.h"

namespace weir {

namespace {

// What a word on the command line stands for.
template <class T>
struct Word {
  std::string_view word;
  T value;
};
constexpr std::array kComputeWords = {Word<model::Compute>{"fast", model::Compute::kFast},
                                      Word<model::Compute>{"exact", model::Compute::kExact}};
using KvWord = Word<kv::Format>;
constexpr std::array kKvWords = {KvWord{"f16", kv::Format::kF16}, KvWord{"f32", kv::Format::kF32},
                                 KvWord{"int8", kv::Format::kInt8}, KvWord{"tq4", kv::Format::kTq4},
                                 KvWord{"tq3", kv::Format::kTq3}};
using ThinkingWord = Word<std::optional<bool>>;
constexpr std::array kThinkingWords = {ThinkingWord{"on", true}, ThinkingWord{"off", false},
                                       ThinkingWord{"auto", std::nullopt}};
using PoolingWord = Word<std::optional<card::Pooling>>;
constexpr std::array kPoolingWords = {
    PoolingWord{"auto", std::nullopt}, PoolingWord{"last", card::Pooling::kLast},
    PoolingWord{"mean", card::Pooling::kMean}, PoolingWord{"cls", card::Pooling::kCls}};
using IsaWord = Word<kernels::Isa>;
constexpr std::array kIsaWords = {
    IsaWord{"scalar", kernels::Isa::kScalar}, IsaWord{"avx2", kernels::Isa::kAvx2},
    IsaWord{"avx512", kernels::Isa::kAvx512}, IsaWord{"amx", kernels::Isa::kAmx}};
using PrefetchWord = Word<ssd::PrefetchMode>;
constexpr std::array kPrefetchWords = {
    PrefetchWord{"auto", ssd::PrefetchMode::kAuto},
    PrefetchWord{"previous-token", ssd::PrefetchMode::kPreviousToken},
    PrefetchWord{"lookahead", ssd::PrefetchMode::kLookahead},
    PrefetchWord{"off", ssd::PrefetchMode::kOff}};
using ReadsWord = Word<ExpertReads>;
constexpr std::array kReadsWords = {ReadsWord{"auto", ExpertReads::kAuto},
                                    ReadsWord{"pread", ExpertReads::kPread},
                                    ReadsWord{"buffered", ExpertReads::kBuffered},
                                    ReadsWord{"page-cache", ExpertReads::kPageCache}};
using ManageWord = Word<api::Manage>;
constexpr std::array kManageWords = {ManageWord{"auto", api::Manage::kAuto},
                                     ManageWord{"on", api::Manage::kOn},
                                     ManageWord{"off", api::Manage::kOff}};
constexpr std::array kOnWords = {Word<bool>{"on", true}, Word<bool>{"off", false}};
using LevelWord = Word<log::Level>;
constexpr std::array kLevelWords = {
    LevelWord{"debug", log::Level::kDebug}, LevelWord{"info", log::Level::kInfo},
    LevelWord{"warn", log::Level::kWarn}, LevelWord{"error", log::Level::kError}};
constexpr std::array kFormatWords = {Word<log::Format>{"text", log::Format::kText},
                                     Word<log::Format>{"json", log::Format::kJson}};

using SortWord = Word<std::string_view>;
constexpr std::array kSortWords = {SortWord{"downloads", "downloads"}, SortWord{"likes", "likes"},
                                   SortWord{"lastModified", "lastModified"},
                                   SortWord{"createdAt", "createdAt"},
                                   SortWord{"trendingScore", "trendingScore"}};

constexpr std::array kSpeculativeWords = {Word<Speculative>{"auto", Speculative::kAuto},
                                          Word<Speculative>{"off", Speculative::kOff},
                                          Word<Speculative>{"ngram", Speculative::kNgram},
                                          Word<Speculative>{"draft", Speculative::kDraft},
                                          Word<Speculative>{"eagle3", Speculative::kEagle3},
                                          Word<Speculative>{"mtp", Speculative::kMtp},
                                          Word<Speculative>{"dflash", Speculative::kDflash}};

template <auto kField, const auto& kWords>
bool choose(Options& options, std::string_view word) {
  for (const auto& each : kWords) {
    if (each.word != word) continue;
    options.*kField = each.value;
    return true;
  }
  return false;
}

template <class T, size_t n>
std::string_view word_for(const std::array<Word<T>, n>& words, T value) {
  return std::ranges::find(words, value, &Word<T>::value)->word;
}

// The table. Groups appear in --help in the order of their first row.
const std::array kRows = {
    Row{"model", "MODEL", &Options::model, kOpening | kPullOnly | kRmOnly | kVerifyOnly, "Model",
        "Folder with config.json and safetensors (Hugging Face or MLX layout), a GGUF file, or a "
        "model of the Hugging Face hub, ORG/NAME[@REVISION][:FILE], which is pulled where it is "
        "not here; FILE: a GGUF file or a quantisation's name (Q4_K_M)",
        "weir-tiny-moe, compiled in"},
    Row{"offline", "", Switch{&Options::offline}, kOpening | kPullOnly | kSearchOnly, "Model",
        "Ask no hub: take only what is here (as HF_HUB_OFFLINE=1 does)", "off"},
    Row{"include", "GLOB", &Options::include, kPullOnly, "Model",
        "Fetch the files whose paths match, instead of those that a model is; '*' also matches "
        "slashes. May be repeated",
        "what Weir reads of a model"},
    Row{"dry-run", "", Switch{&Options::dry_run}, kPullOnly, "Model",
        "Only say what would be fetched", "off"},
    Row{"alias", "NAME[,NAME]", Names{&Options::alias}, kPlanning, "Model",
        "Names under which clients find the model; answers and /v1/models show the first. '*' "
        "among them: whatever name a request uses. May be repeated",
        "the folder's name"},
    Row{"ctx-size", "TOKENS", Tokens{&Options::ctx_size}, kPlanning | kSearchOnly, "Model",
        "Longest sequence, prompt and answer together",
        "the model's own, or the longest that fits"},
    Row{"compute", "fast|exact", Choice{choose<&Options::compute, kComputeWords>}, kEvery, "Model",
        "fast: int8 activations, bf16 for prompts on AMX; exact: float32 throughout", "fast"},
    Row{"kv-cache", "f16|f32|int8|tq4|tq3", Choice{choose<&Options::kv_cache, kKvWords>}, kEvery,
        "Model",
        "How keys and values are stored; int8, tq4 and tq3: compressed, once 32 tokens are "
        "complete, to about a half, 3/10 and 1/4 of f16",
        "f16, with --compute exact f32"},
    Row{"turbo-kv", "", Switch{&Options::turbo_kv}, kEvery, "Model", "The same as --kv-cache tq4",
        "off"},
    Row{"config-override", "KEY=VALUE", &Options::config_override, kOpening | kPullOnly, "Model",
        "Replace a key of config.json where the file is wrong: VALUE is JSON (null says that there "
        "is no such thing), dots lead into objects (rope_scaling.factor=8). May be repeated; in "
        "the environment one a line",
        "none"},
    Row{"chat-template", "FILE", &Options::chat_template, kServeOnly, "Model",
        "Jinja template to use instead of the model's", "the model's"},
    Row{"trust-request-template", "", Switch{&Options::trust_request_template}, kServeOnly, "Model",
        "Take chat templates that requests bring (chat_template): programs of whoever may ask, "
        "bound "
        "by the interpreter's limits",
        "off"},
    Row{"tool-parser", "NAME|auto|none", &Options::tool_parser, kServeOnly, "Model",
        "How the model writes calls of functions; auto: as the chat template shows; an unknown "
        "name "
        "prints all",
        "auto"},
    Row{"thinking", "on|off|auto", Choice{choose<&Options::thinking, kThinkingWords>}, kServeOnly,
        "Model",
        "Whether models that can do either think before they answer, unless a request says; auto: "
        "as the chat template has it",
        "auto"},
    Row{"reasoning-format", "auto|deepseek|none", &Options::reasoning_format, kServeOnly, "Model",
        "Where thoughts go; auto: to reasoning_content, if the chat template speaks of them; "
        "deepseek: also if not, by <think>; none: to the content, with their tags",
        "auto"},
    Row{"reasoning-budget", "TOKENS", &Options::reasoning_budget, kServeOnly, "Model",
        "Most tokens that a model thinks, unless a request says: then its thoughts are closed and "
        "it answers; 0: it does not think",
        "-1: as many as it likes"},
    Row{"reasoning-budget-message", "TEXT", &Options::reasoning_budget_message, kServeOnly, "Model",
        "What closes thoughts that have used up their budget, before the end marker; '' is nothing",
        "'That is enough thinking. I will give the answer now.', on a line of its own"},
    Row{"pooling", "auto|last|mean|cls", Choice{choose<&Options::pooling, kPoolingWords>},
        kServeOnly, "Model",
        "Which hidden states become an embedding: the last token's, the mean, the first token's",
        "auto: as the files of sentence-transformers say, else last"},
    Row{"reranker", "auto|yes-no|none", &Options::reranker, kServeOnly, "Model",
        "Whether the model judges documents, for /v1/rerank and /v1/score; yes-no: by the odds of "
        "these two words, as Qwen3-Reranker does",
        "auto: as a LogitScore module in modules.json or classifier_from_token in config.json say"},

    Row{"enable-lora", "", Switch{&Options::enable_lora}, kPlanning, "Adapters",
        "Take adapters (LoRA) to the model; --lora-modules and --lora-dir say so too", "off"},
    Row{"lora-modules", "NAME=PATH", &Options::lora_modules, kPlanning, "Adapters",
        "Load an adapter, which requests ask for by NAME in place of the model's: a folder of "
        "PEFT or mlx-lm, a GGUF file, or ORG/NAME in the hub's cache; also as JSON {\"name\", "
        "\"path\"}. May be repeated; in the environment one a line",
        "none"},
    Row{"lora-dir", "DIR", &Options::lora_dir, kPlanning, "Adapters",
        "Let /v1/load_lora_adapter load what lies below this folder, and what is in the hub's "
        "cache",
        "none: adapters are those of the command line"},
    Row{"max-loras", "N", &Options::max_loras, kPlanning, "Adapters",
        "Different adapters in one step; requests for more wait", "8"},
    Row{"max-cpu-loras", "N", &Options::max_cpu_loras, kPlanning, "Adapters",
        "Adapters that are loaded at once, for which memory is kept", "--max-loras"},
    Row{"max-lora-rank", "N", &Options::max_lora_rank, kPlanning, "Adapters",
        "Largest rank of an adapter", "16"},

    Row{"threads", "N", &Options::threads, kOpening, "Machine", "Compute threads",
        "the cores this process may use"},
    Row{"isa", "scalar|avx2|avx512|amx", Choice{choose<&Options::isa, kIsaWords>}, kOpening,
        "Machine", "Use these kernels instead of the processor's best", "the best"},
    Row{"mem-limit", "SIZE", Bytes{&Options::mem_limit}, kPlanning | kSearchOnly, "Machine",
        "Memory that weights, KV cache and buffers may take (4G, 512M)",
        "what the machine or cgroup has free, less a tenth"},
    Row{"kv-memory", "SIZE", Bytes{&Options::kv_memory}, kPlanning, "Machine",
        "Memory that keys and values may take; they take it as it is used, and give it back",
        "what is left"},
    Row{"disk-reserve", "SIZE", Bytes{&Options::disk_reserve}, kOpening | kPullOnly, "Machine",
        "Space that stays free on the disk where a model is pulled or packed, or prompts are kept; "
        "with less, nothing is written",
        "5G"},

    Row{"models", "FILE", &Options::models, kServeOnly, "Several models",
        "Serve the models that FILE names, in llama-server's form: a section [NAME] each, with "
        "options as KEY = VALUE, besides pin and load-on-startup; [*] is for all (docs/several-"
        "models.md)",
        "the one of --model"},
    Row{"no-autoload", "", Switch{&Options::autoload, false}, kServeOnly, "Several models",
        "Requests load no models: POST /models/load does", "they do"},
    Row{"idle-unload", "SECONDS", &Options::idle_unload, kServeOnly, "Several models",
        "Unload a model that is not pinned after so long without a request; 0: never", "0"},
    Row{"load-timeout", "SECONDS", &Options::load_timeout, kServeOnly, "Several models",
        "How long a request waits for its model; then 503", "300"},
    Row{"load-stay", "SECONDS", &Options::load_stay, kServeOnly, "Several models",
        "How long a model that was just loaded stays, whatever other is wanted", "10"},

    Row{"speculative", "auto|off|ngram|draft|eagle3|mtp|dflash",
        Choice{choose<&Options::speculative, kSpeculativeWords>}, kPlanning, "Speculation",
        "Which drafts of answers a step computes with them, to take those that are right: more "
        "tokens a second and the same answers, to the bit (docs/speculation.md). ngram: copies of "
        "the prompt, the answer, earlier answers and a request's prediction; draft, eagle3, mtp, "
        "dflash: a drafter of that kind (docs/drafters.md); auto: all that there is, as many as pay",
        "auto"},
    Row{"num-draft-tokens", "N", &Options::num_draft_tokens, kPlanning, "Speculation",
        "Most drafts of a sequence in a step, 1 to 15", "7"},
    Row{"draft-model", "DIR", &Options::draft_model, kPlanning, "Speculation",
        "A drafter for the model: a small model with the same vocabulary, or a head that was trained "
        "for it (EAGLE-3, MTP, DFlash). Without it a module of the model's own checkpoint drafts, if "
        "there is one (MTP)",
        "none"},
    Row{"draft-bits", "0|4|8", &Options::draft_bits, kPlanning, "Speculation",
        "Bits in which a drafter's matrices are held that are stored in floats; 0: as they are "
        "stored, as always with --compute exact",
        "4"},
    Row{"draft-vocabulary", "N", &Options::draft_vocabulary, kPlanning, "Speculation",
        "How many of the first tokens of the vocabulary, the most frequent ones in most, a drafter "
        "without a head of its own chooses among; 0: all",
        "32768"},

    Row{"stream-experts", "", Switch{&Options::stream_experts}, kEvery, "Experts from disk",
        "Read a mixture-of-experts model's experts from disk as they are needed: for models larger "
        "than memory. Same results",
        "off"},
    Row{"expert-memory", "SIZE|auto", Bytes{&Options::expert_memory, true}, kEvery,
        "Experts from disk", "Memory for experts; never more", "auto: what is left"},
    Row{"ssd-prefetch", "auto|previous-token|lookahead|off",
        Choice{choose<&Options::ssd_prefetch, kPrefetchWords>}, kEvery, "Experts from disk",
        "Which guesses are read ahead: what the last token was routed to, what the next layer's "
        "router says, none; auto: what pays",
        "auto"},
    Row{"ssd-io", "auto|pread|buffered", Choice{choose<&Options::ssd_io, kReadsWords>},
        kEvery | kPackOnly, "Experts from disk",
        "How experts are read; auto: io_uring and past the page cache, where the system allows it; "
        "pread: by threads; buffered: by threads through the page cache; bench also: page-cache, "
        "which leaves them there",
        "auto"},
    Row{"stream-budget", "CYCLES[,CYCLES]", &Options::stream_budget, kBenchOnly,
        "Experts from disk",
        "Instead of --expert-memory: memory for so many times the experts of one token, one after "
        "another",
        "none"},
    Row{"routing", "modelled|modelled-one-topic|FILE", &Options::routing, kBenchOnly,
        "Experts from disk",
        "Routing in the place of the model's own: drawn with the statistics of published traces, "
        "each sequence with its own topic or all with one, or a route trace's; the figures say so",
        "the model's own"},
    Row{"route-trace", "FILE", &Options::route_trace, kBenchOnly | kPerplexityOnly,
        "Experts from disk", "At the end write which experts each token was routed to", "none"},
    Row{"output", "FILE", &Options::output, kPackOnly, "Experts from disk",
        "Where to write the bundle; elsewhere than by default nobody looks for it",
        "weir-experts.bundle in the model's folder, or in ~/.cache/weir"},

    Row{"quantize", "2|3|4|5|6|8", &Options::quantize, kEvery, "Quantising",
        "Hold matrices that are stored in floats in so many bits, in groups of 64, by MLX's rule",
        "as they are stored"},
    Row{"to", "FOLDER", &Options::to, kQuantizeOnly, "Quantising",
        "The folder to write: the second word after 'quantize'", "none"},
    Row{"bits", "2|3|4|5|6|8", &Options::bits, kQuantizeOnly, "Quantising",
        "Bits of a weight, by MLX's rule", "4"},
    Row{"group", "32|64|128", &Options::group, kQuantizeOnly, "Quantising",
        "Neighbouring weights that share a scale and a bias", "64"},
    Row{"rule", "REGEX=BITS:GROUP", &Options::rule, kQuantizeOnly, "Quantising",
        "Other numbers for modules in whose path the expression is found, or REGEX=skip, which "
        "leaves them in floats; the first rule that matches counts; may be repeated",
        "none; routers of experts get 8:64"},
    Row{"like", "FOLDER", &Options::like, kQuantizeOnly, "Quantising",
        "Take all numbers from the 'quantization' of this checkpoint's config.json", "none"},

    Row{"parallel", "N", &Options::parallel, kPlanning, "Scheduling",
        "Sequences that decode at once, at most half of --prefill-size, which grows with it where "
        "it "
        "is not given",
        "what the KV memory holds, at most 256"},
    Row{"queue", "N", &Options::queue, kServeOnly, "Scheduling",
        "Requests running or waiting; more are answered 429", "1024"},
    Row{"queue-timeout", "SECONDS", &Options::queue_timeout, kServeOnly, "Scheduling",
        "Answer 429 to a request that has waited so long without being begun; 0: never", "60"},
    Row{"request-timeout", "SECONDS", &Options::request_timeout, kServeOnly, "Scheduling",
        "End an answer that takes longer with an error; 0: never", "0"},
    Row{"image-cache", "SIZE", Bytes{&Options::image_cache}, kPlanning, "Images and sounds",
        "Memory for what a model's encoders make of pictures and sounds, so that one that comes again "
        "is not encoded again; those of one request must fit in it",
        "512M"},
    Row{"disk-cache", "SIZE", Bytes{&Options::disk_cache}, kPlanning, "Machine",
        "Keep prompts on disk, so that they need not be computed again after a restart or once "
        "memory has forgotten them (20G); they can be read there",
        "off"},
    Row{"disk-cache-dir", "DIR", &Options::disk_cache_dir, kPlanning | kCacheOnly, "Machine",
        "Where they lie: a folder of its own, which only this user may enter",
        "$XDG_CACHE_HOME/weir/prompts, or ~/.cache/weir/prompts"},

    Row{"prefill-size", "TOKENS", Tokens{&Options::prefill_size}, kPlanning, "Scheduling",
        "Most tokens of one step, prompt chunks included", "512, or twice --parallel"},
    Row{"max-step-ms", "MS", &Options::max_step_ms, kServeOnly, "Scheduling",
        "Cut prompts so that a step takes no longer: smoother streams, slower prompts", "no limit"},
    Row{"no-prefix-cache", "", Switch{&Options::prefix_cache, false}, kServeOnly, "Scheduling",
        "Compute every prompt from its first token", "off"},
    Row{"cache-idle", "SECONDS", &Options::cache_idle, kServeOnly, "Scheduling",
        "Prompts that nobody has sent again for so long are forgotten, and their memory goes back "
        "to the system, as all unused memory does after a minute (or this, if it is less); 0: "
        "they stay while there is memory",
        "1800"},

    Row{"max-tokens", "TOKENS", Tokens{&Options::max_tokens}, kServeOnly, "Answers",
        "Longest chat answer when the request names none", "2048"},
    Row{"max-prompt-tokens", "TOKENS", Tokens{&Options::max_prompt_tokens}, kServeOnly, "Answers",
        "Refuse longer prompts with 400", "the context"},
    Row{"responses-store", "SIZE", Bytes{&Options::responses_store}, kServeOnly, "Answers",
        "Memory for responses that /v1/responses keeps, to be continued or read again; 0: none",
        "64M, or less where memory is short"},
    Row{"temp", "T", &Options::temp, kServeOnly, "Answers", "Default temperature; 0 is greedy",
        "generation_config.json's, else 0.8"},
    Row{"top-p", "P", &Options::top_p, kServeOnly, "Answers", "Default top-p; 1 is off",
        "generation_config.json's, else 0.95"},
    Row{"top-k", "K", &Options::top_k, kServeOnly, "Answers", "Default top-k; 0 is off",
        "generation_config.json's, else 40"},
    Row{"min-p", "P", &Options::min_p, kServeOnly, "Answers", "Default min-p; 0 is off",
        "generation_config.json's, else 0.05"},
    Row{"typical", "P", &Options::typical, kServeOnly, "Answers", "Default typical-p",
        "generation_config.json's, else 1: off"},
    Row{"repeat-penalty", "R", &Options::repeat_penalty, kServeOnly, "Answers",
        "Default repetition penalty", "generation_config.json's, else 1"},
    Row{"repeat-last-n", "N", &Options::repeat_last_n, kServeOnly, "Answers",
        "Default of how many of the last tokens the penalties see; 0: none", "-1: all"},
    Row{"top-n-sigma", "N", &Options::top_n_sigma, kServeOnly, "Answers",
        "Default top-n-sigma: logits within so many standard deviations of the best", "-1: off"},
    Row{"xtc-probability", "P", &Options::xtc_probability, kServeOnly, "Answers",
        "Default of how often XTC leaves out all but the least of the likely tokens", "0: off"},
    Row{"xtc-threshold", "P", &Options::xtc_threshold, kServeOnly, "Answers",
        "Default of how probable a token must be for XTC; above 0.5 is off", "0.1"},
    Row{"dynatemp-range", "T", &Options::dynatemp_range, kServeOnly, "Answers",
        "Default range of the dynamic temperature", "0: off"},
    Row{"dynatemp-exp", "E", &Options::dynatemp_exp, kServeOnly, "Answers",
        "Default exponent of the dynamic temperature", "1"},
    Row{"dry-multiplier", "M", &Options::dry_multiplier, kServeOnly, "Answers",
        "Default of DRY, the penalty of repeated sequences", "0: off"},
    Row{"dry-base", "B", &Options::dry_base, kServeOnly, "Answers",
        "Default of how DRY grows with each repeated token", "1.75"},
    Row{"dry-allowed-length", "N", &Options::dry_allowed_length, kServeOnly, "Answers",
        "Default of DRY: repetitions of fewer tokens are free", "2"},
    Row{"dry-penalty-last-n", "N", &Options::dry_penalty_last_n, kServeOnly, "Answers",
        "Default of how many of the last tokens DRY searches; -1: prompt and answer", "64"},

    Row{"max-images", "N", &Options::max_images, kServeOnly, "Images and sounds",
        "Most images of one request, for models that see them", "64"},
    Row{"max-sounds", "N", &Options::max_sounds, kServeOnly, "Images and sounds",
        "Most sounds of one request, for models that hear them", "16"},
    Row{"image-memory", "SIZE", Bytes{&Options::image_memory}, kPlanning, "Images and sounds",
        "Memory that images and sounds may take from their arrival until the model has taken them in; "
        "how many pixels an image may have follows from it",
        "an eighth of the memory, at most 2G; with --models a 32nd, at most 512M"},
    Row{"allow-remote-media", "HOST[,HOST]", Names{&Options::allow_remote_media}, kServeOnly,
        "Images and sounds",
        "Fetch images and sounds from these hosts where requests name their addresses (http, https): a name, "
        "*.NAME for all below it, '*' for any; addresses that are not public only as ADDRESS or "
        "ADDRESS/BITS; may be repeated",
        "none: they come in requests"},
    Row{"media-path", "DIR", &Options::media_path, kServeOnly, "Images and sounds",
        "Let requests name images and sounds below this folder as file:NAME; symbolic links are not "
        "followed",
        "none"},

    Row{"host", "ADDRESS", &Options::host, kAddress, "Network", "Address to listen on",
        "127.0.0.1"},
    Row{"port", "PORT", &Options::port, kAddress, "Network",
        "Port to listen on; 0 takes a free one", "5413"},
    Row{"unix-socket", "PATH", &Options::unix_socket, kServeOnly, "Network",
        "Listen on this Unix socket too", "none"},
    Row{"api-key", "KEY[,KEY]", Names{&Options::api_key}, kServeOnly | kSuiteOnly, "Network",
        "Require one of these keys (Authorization: Bearer KEY); may be repeated", "none"},
    Row{"api-key-file", "FILE", &Options::api_key_file, kServeOnly, "Network",
        "Keys with limits, one a line: KEY name=NAME scope=SCOPE[,SCOPE] concurrency=N "
        "requests-per-minute=N tokens-per-minute=N priority=N; SIGHUP reads it anew",
        "none"},
    Row{"tls-cert", "FILE", &Options::tls_cert, kAddress, "Network",
        "Speak HTTPS with this certificate chain (PEM); SIGHUP reads it anew", "none"},
    Row{"tls-key", "FILE", &Options::tls_key, kAddress, "Network",
        "The certificate's private key (PEM, without a passphrase)", "none"},
    Row{"cors", "ORIGIN[,ORIGIN]", Names{&Options::cors}, kServeOnly, "Network",
        "Let pages of these origins (https://chat.example) call the server; '*' for all; may be "
        "repeated",
        "none"},
    Row{"allowed-hosts", "NAME[,NAME]", Names{&Options::allowed_hosts}, kServeOnly, "Network",
        "Without keys: answer also under these names (of a container, a service, a proxy), beside "
        "addresses, localhost and this machine's name; *.NAME for all below NAME, '*' for any; may "
        "be repeated",
        "none"},
    Row{"manage", "auto|on|off", Choice{choose<&Options::manage, kManageWords>}, kServeOnly,
        "Network",
        "Who may change the server for everybody (the endpoints of scope admin): on: keys of that "
        "scope, and without keys everybody who reaches it; auto: the same, but without keys only "
        "while it listens on nothing but loopback addresses and Unix sockets; off: nobody",
        "auto"},
    Row{"ui", "on|off", Choice{choose<&Options::ui, kOnWords>}, kServeOnly, "Network",
        "A page for browsers at /: chat, models, figures, settings; off: a line of text", "on"},
    Row{"ollama", "on|off", Choice{choose<&Options::ollama, kOnWords>}, kServeOnly, "Network",
        "Whether Ollama's endpoints (/api) are there, for programs that speak nothing else", "on"},
    Row{"max-connections", "N", &Options::max_connections, kServeOnly, "Network",
        "Open connections; beyond, the longest idle is closed", "16384, with TLS 2048"},
    Row{"max-body", "SIZE", Bytes{&Options::max_body}, kServeOnly, "Network",
        "Largest request body; a larger one gets 413",
        "32M, on small machines a hundredth of memory"},
    Row{"idle-timeout", "SECONDS", &Options::idle_timeout, kServeOnly, "Network",
        "Close a kept-alive connection after this long without a request", "120"},
    Row{"drain-seconds", "SECONDS", &Options::drain_seconds, kServeOnly, "Network",
        "After SIGTERM, cancel the answers that are still open after this long", "25"},
    Row{"drain-delay", "SECONDS", &Options::drain_delay, kServeOnly, "Network",
        "After SIGTERM, say 503 at /ready and /health but serve on for this long before draining: "
        "load balancers take their time",
        "0"},

    Row{"prompt", "TOKENS", Tokens{&Options::bench_prompt}, kBenchOnly, "Benchmark",
        "Prompt length of the prefill measurement", "512"},
    Row{"decode", "TOKENS", Tokens{&Options::bench_decode}, kBenchOnly, "Benchmark",
        "Tokens decoded in each measurement", "128"},
    Row{"batch", "N[,N]", &Options::bench_batch, kBenchOnly, "Benchmark",
        "Sequences that decode together", "1,2,4,8,16,32"},
    Row{"depth", "N[,N]", &Options::bench_depth, kBenchOnly, "Benchmark",
        "Tokens that each sequence has before decoding is timed", "8"},
    Row{"repetitions", "N", &Options::repetitions, kBenchOnly, "Benchmark",
        "Repetitions of each measurement; the median is reported", "5"},
    Row{"file", "TEXT", &Options::file, kPerplexityOnly, "Perplexity", "Text to measure (UTF-8)",
        "required"},
    Row{"ctx", "TOKENS", Tokens{&Options::ctx}, kPerplexityOnly, "Perplexity",
        "Window: the text is cut into pieces of this many tokens", "512"},
    Row{"tokens", "TOKENS", Tokens{&Options::tokens}, kPerplexityOnly, "Perplexity",
        "Measure no more than this many tokens, from the text's beginning", "all"},
    Row{"against-kv", "f16|f32|int8|tq4|tq3", Choice{choose<&Options::against_kv, kKvWords>},
        kPerplexityOnly, "Perplexity",
        "Compare with the same model whose keys and values are in this format, as --against does "
        "with another model",
        "none"},
    Row{"against", "MODEL", &Options::against, kPerplexityOnly, "Perplexity",
        "Run this model on the same windows, and print the mean KL divergence of the measured "
        "model from it, in nats a token, and how often both find the same token the most likely. "
        "It is always computed in exact floats, as its files are: --compute and the other options "
        "are the measured model's",
        "none"},

    Row{"only", "PART[,PART]", Names{&Options::only}, kSuiteOnly, "Suite",
        "Run these parts: speed, serving, memory, matrix, cache, bits, images, audio, quality, "
        "needles, tools, soak. May be repeated",
        "all"},
    Row{"quick", "", Switch{&Options::quick}, kSuiteOnly, "Suite",
        "Fewer and shorter measurements: less than ten minutes on two cores with a small model",
        "off"},
    Row{"hours", "N", &Options::hours, kSuiteOnly, "Suite", "How long the soak lasts",
        "ten minutes; with --quick one"},
    Row{"url", "URL", &Options::url, kSuiteOnly, "Suite",
        "Measure the server at this address, of whatever make, instead of servers of the suite's "
        "own; what can only be seen from the inside is skipped by name",
        "none"},
    Row{"json", "FILE", &Options::json_report, kSuiteOnly, "Suite",
        "Write the report as JSON, which --against reads; '-' is standard output", "none"},
    Row{"markdown", "FILE", &Options::markdown_report, kSuiteOnly, "Suite",
        "Write the report as Markdown; '-' is standard output", "none"},
    Row{"against", "OLD.json", &Options::old_report, kSuiteOnly, "Suite",
        "Compare with an older report of the same model on the same machine; what is worse is "
        "named, and the exit status is 1",
        "none"},
    Row{"lm-eval", "TASK[,TASK]", Names{&Options::lm_eval}, kSuiteOnly, "Suite",
        "Instead of the parts: print how lm-evaluation-harness runs these tasks on a server, and "
        "run them where it is installed",
        "none"},

    Row{"log-level", "debug|info|warn|error", Choice{choose<&Options::log_level, kLevelWords>},
        kServeOnly, "Logging", "What is logged", "info"},
    Row{"log-file", "FILE", &Options::log_file, kServeOnly, "Logging",
        "Write the log to the end of this file; SIGHUP opens it anew, for logrotate",
        "standard error"},
    Row{"log-format", "text|json", Choice{choose<&Options::log_format, kFormatWords>}, kServeOnly,
        "Logging", "json: an object a line", "text"},
    Row{"trace", "FILE", &Options::trace, kServeOnly | kBenchOnly, "Logging",
        "At the end write what the threads did last, for Perfetto; bench: of streams over loopback",
        "none"},

    Row{"words", "WORDS", &Options::words, kSearchOnly, "Search",
        "What to search for: the words after 'search'", "none: the built-in catalogue"},
    Row{"filter", "TAG", &Options::filter, kSearchOnly, "Search",
        "Only models with this tag of the hub, such as mlx or gguf", "none"},
    Row{"sort", "downloads|likes|lastModified|createdAt|trendingScore",
        Choice{choose<&Options::sort, kSortWords>}, kSearchOnly, "Search",
        "Which come first, from the most", "downloads"},

    Row{"action", "list|clear", &Options::cache_action, kCacheOnly, "Prompt cache",
        "What to do: the word after 'cache'. clear removes what no running server has", "list"},

    Row{"json", "", Switch{&Options::json},
        kInfoToo | kBenchOnly | kPullOnly | kListOnly | kVerifyOnly | kSearchOnly | kCacheOnly,
        "General",
        "Print JSON instead of text; pull: an object a line, as it goes on", "off"},
    Row{"config", "FILE", &Options::config,
        kOpening | kPullOnly | kListOnly | kRmOnly | kVerifyOnly | kSearchOnly | kCacheOnly |
            kHealthOnly,
        "General",
        "Read options from this file: lines of name=value, names as here without the dashes, '#' "
        "begins a comment. Options of other commands may stand there",
        "none"},
};

constexpr std::array kCommands = {
    CommandRow{"serve", Command::kServe, kServeOnly, "Serve the OpenAI API (the default)"},
    CommandRow{"info", Command::kInfo, kInfoToo,
               "Show a model's architecture, memory plan and kernels, and whether it runs here"},
    CommandRow{"bench", Command::kBench, kBenchOnly,
               "Measure prefill and decode speed beside the machine's limits"},
    CommandRow{"perplexity", Command::kPerplexity, kPerplexityOnly,
               "Measure a model's perplexity on a text"},
    CommandRow{"suite", Command::kSuite, kSuiteOnly,
               "Measure all of it, from speed to quality, beside its limits and an older report"},
    CommandRow{"calibrate", Command::kCalibrate, kCalibrateToo,
               "Measure memory and arithmetic, and with --model its disk, for forecasts"},
    CommandRow{"pack", Command::kPack, kPackOnly,
               "Write a model's experts to a bundle that --stream-experts reads faster"},
    CommandRow{"quantize", Command::kQuantize, kQuantizeOnly,
               "Write a model with its weights in 2 to 8 bits", "MODEL OUT"},
    CommandRow{"pull", Command::kPull, kPullOnly,
               "Fetch a model of the Hugging Face hub into its cache",
               "ORG/NAME[@REVISION][:FILE]"},
    CommandRow{"list", Command::kList, kListOnly, "List the models of that cache"},
    CommandRow{"rm", Command::kRm, kRmOnly, "Delete a model of that cache",
               "ORG/NAME[@REVISION][:FILE]"},
    CommandRow{"verify", Command::kVerify, kVerifyOnly,
               "Read a model of that cache again, and compare it with its hashes",
               "ORG/NAME[@REVISION]"},
    CommandRow{"search", Command::kSearch, kSearchOnly,
               "Search the Hugging Face hub, or the built-in catalogue", "[WORDS]"},
    CommandRow{"cache", Command::kCache, kCacheOnly,
               "List what lies in the prompt cache on disk, or remove it", "[clear]"},
    CommandRow{"health", Command::kHealth, kHealthOnly,
               "Ask the server that runs here whether it is well; the exit status says it"},
};

std::string column(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 2), ' ');
  return text;
}

// "-m, --model DIR".
std::string flag_text(const Row& row) {
  std::string text;
  if (const std::string_view name = short_name(row.name); !name.empty())
    text.append("-").append(name).append(", ");
  text.append("--").append(row.name);
  if (!row.value.empty()) text.append(" ").append(row.value);
  return text;
}

std::vector<std::string_view> groups_of(uint16_t bit) {
  std::vector<std::string_view> groups;
  for (const Row& row : kRows)
    if ((row.commands & bit) && std::ranges::find(groups, row.group) == groups.end())
      groups.push_back(row.group);
  return groups;
}

}  // namespace

std::string help_text(const CommandRow& command) {
  constexpr size_t kWidth = 32;
  std::string out;
  if (command.command == Command::kServe) {
    out += "weir " + std::string(kVersion) + ": an OpenAI-compatible server for local models\n\n";
    out += "usage: weir [command] [options]\n\nCommands\n";
    for (const CommandRow& row : kCommands)
      out += "  " + column(std::string(row.name), kWidth - 2) + std::string(row.help) + "\n";
  } else {
    out += "weir " + std::string(command.name) + ": " + std::string(command.help) + "\n\n";
    out += "usage: weir " + std::string(command.name) +
           (command.words.empty() ? "" : " " + std::string(command.words)) + " [options]\n";
  }
  for (const std::string_view group : groups_of(command.bit)) {
    out += "\n" + std::string(group) + "\n";
    for (const Row& row : kRows) {
      if (row.group != group || !(row.commands & command.bit)) continue;
      const std::string flag = "  " + flag_text(row);
      out +=
          flag.size() + 2 > kWidth ? flag + "\n" + std::string(kWidth, ' ') : column(flag, kWidth);
      out += std::string(row.help) + " [" + std::string(row.fallback) + "]\n";
    }
  }
  out += column("  --help, --version", kWidth) + "Print this, or the version, and exit\n";
  out +=
      "\nOptions are also environment variables: --kv-cache is WEIR_KV_CACHE. The command\n"
      "line wins over the environment, the environment over the config file.\n";
  if (command.command == Command::kServe)
    out += "'weir COMMAND --help' shows the options of the other commands.\n";
  return out;
}

std::string_view word_of(model::Compute compute) { return word_for(kComputeWords, compute); }
std::string_view word_of(Speculative speculative) {
  return word_for(kSpeculativeWords, speculative);
}
std::string_view word_of(ssd::PrefetchMode mode) { return word_for(kPrefetchWords, mode); }

std::span<const Row> option_rows() { return kRows; }

std::span<const CommandRow> command_rows() { return kCommands; }

std::string environment_name(std::string_view option) {
  std::string name = "WEIR_";
  for (const char c : option)
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::string options_page() {
  std::string out =
      "# Options\n\nMade from the table in `src/program/options.cpp`; a test keeps them equal.\n\n"
      "The command line wins over the environment, the environment over the config file "
      "(`--config`). "
      "Of an option\ngiven twice the last counts, unless it may be repeated. TOKENS may end in k "
      "or "
      "M, SIZE in K, M, G or T, which\ncount in 1,024s. Names of llama-server's, Ollama's and "
      "vLLM's "
      "options that Weir does not have are answered with\na sentence that says what there is "
      "instead.\n";
  constexpr uint16_t kAll = 0xffff;
  for (const std::string_view group : groups_of(kAll)) {
    out += "\n## " + std::string(group) +
           "\n\n| option | environment | default | meaning | commands |\n"
           "| --- | --- | --- | --- | --- |\n";
    for (const Row& row : kRows) {
      if (row.group != group) continue;
      std::string flag = flag_text(row), commands;
      for (size_t bar = 0; (bar = flag.find('|', bar)) != std::string::npos; bar += 2)
        flag.insert(bar, "\\");
      for (const CommandRow& c : kCommands)
        if (row.commands & c.bit) commands += (commands.empty() ? "" : ", ") + std::string(c.name);
      out += "| `" + flag + "` | " +
             (in_environment(row) ? "`" + environment_name(row.name) + "`" : "none") + " | " +
             std::string(row.fallback) + " | " + std::string(row.help) + " | " + commands + " |\n";
    }
  }
  return out;
}

}  // namespace weir
