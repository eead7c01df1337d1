#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/byte_size.h"
#include "base/near_name.h"

namespace weir {

namespace {

// Which commands take an option.
enum : uint8_t {
  kServeOnly = 1,
  kInfoToo = 2,
  kBenchOnly = 4,
  kPerplexityOnly = 8,
  kCalibrateToo = 16,
  kPackOnly = 32
};
// Those that run a model, or plan it.
constexpr uint8_t kEvery = kServeOnly | kInfoToo | kBenchOnly | kPerplexityOnly;
constexpr uint8_t kPlanning = kServeOnly | kInfoToo;

struct Bytes {
  int64_t Options::*field;
  bool automatic = false;  // "auto" is a value, and means 0.
};
// A flag without a value: present means `value`.
struct Switch {
  bool Options::*field;
  bool value = true;
};
using Field =
    std::variant<std::string Options::*, int32_t Options::*, std::optional<int32_t> Options::*,
                 std::optional<double> Options::*, Bytes, Switch>;

struct Row {
  std::string_view name;   // Without the dashes.
  std::string_view value;  // What stands for the value in --help; empty for a switch.
  Field field;
  uint8_t commands;
  std::string_view group;
  std::string_view help;
  std::string_view fallback;  // The default, as a person would say it.
};

// The table. Groups appear in --help in the order of their first row.
const std::array kRows = {
    Row{"model", "DIR", &Options::model, kEvery | kCalibrateToo | kPackOnly, "Model",
        "Folder with config.json and safetensors (Hugging Face or MLX layout)",
        "weir-tiny-moe, compiled in"},
    Row{"alias", "NAME", &Options::alias, kPlanning, "Model",
        "Name under which clients find the model", "the folder's name"},
    Row{"ctx-size", "TOKENS", &Options::ctx_size, kPlanning, "Model",
        "Longest sequence, prompt and answer together", "the model's own"},
    Row{"compute", "fast|exact", &Options::compute, kEvery, "Model",
        "fast: int8 activations, bf16 for prompts on AMX; exact: float32 throughout", "fast"},
    Row{"kv-cache", "f16|f32", &Options::kv_cache, kEvery, "Model",
        "How keys and values are stored", "f16, with --compute exact f32"},
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
    Row{"thinking", "on|off|auto", &Options::thinking, kServeOnly, "Model",
        "Whether models that can do either think before they answer, unless a request says; auto: "
        "as the chat template has it",
        "auto"},
    Row{"reasoning-format", "auto|deepseek|none", &Options::reasoning_format, kServeOnly, "Model",
        "Where thoughts go; auto: to reasoning_content, if the chat template speaks of them; "
        "deepseek: also if not, by <think>; none: to the content, with their tags",
        "auto"},
    Row{"pooling", "auto|last|mean|cls", &Options::pooling, kServeOnly, "Model",
        "Which hidden states become an embedding: the last token's, the mean, the first token's",
        "auto: as the files of sentence-transformers say, else last"},
    Row{"reranker", "auto|yes-no|none", &Options::reranker, kServeOnly, "Model",
        "Whether the model judges documents, for /v1/rerank and /v1/score; yes-no: by the odds of "
        "these two words, as Qwen3-Reranker does",
        "auto: as a LogitScore module in modules.json or classifier_from_token in config.json say"},

    Row{"threads", "N", &Options::threads, kEvery | kCalibrateToo | kPackOnly, "Machine",
        "Compute threads", "the cores this process may use"},
    Row{"isa", "scalar|avx2|avx512|amx", &Options::isa, kEvery | kCalibrateToo | kPackOnly,
        "Machine", "Use these kernels instead of the processor's best", "the best"},
    Row{"mem-limit", "SIZE", Bytes{&Options::mem_limit}, kPlanning, "Machine",
        "Memory that weights, KV cache and buffers may take (4G, 512M)",
        "what the machine or cgroup has free, less a tenth"},
    Row{"kv-memory", "SIZE", Bytes{&Options::kv_memory}, kPlanning, "Machine",
        "Memory for keys and values", "up to half of what is left beside the weights"},

    Row{"stream-experts", "", Switch{&Options::stream_experts}, kEvery, "Experts from disk",
        "Read a mixture-of-experts model's experts from disk as they are needed: for models larger "
        "than memory. Same results",
        "off"},
    Row{"expert-memory", "SIZE|auto", Bytes{&Options::expert_memory, true}, kEvery,
        "Experts from disk", "Memory for experts; never more", "auto: what is left"},
    Row{"ssd-prefetch", "auto|previous-token|lookahead|off", &Options::ssd_prefetch, kEvery,
        "Experts from disk",
        "Which guesses are read ahead: what the last token was routed to, what the next layer's "
        "router says, none; auto: what pays",
        "auto"},
    Row{"ssd-io", "auto|pread|buffered", &Options::ssd_io, kEvery | kPackOnly, "Experts from disk",
        "How experts are read; auto: io_uring and past the page cache, where the system allows it; "
        "pread: by threads; buffered: by threads through the page cache; bench also: page-cache, "
        "which leaves them there",
        "auto"},
    Row{"no-overlap", "", Switch{&Options::overlap, false}, kBenchOnly, "Experts from disk",
        "Read all experts of a layer before any is computed, to see what overlap gives", "off"},
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
    Row{"disk-reserve", "SIZE", Bytes{&Options::disk_reserve}, kPackOnly, "Experts from disk",
        "Space that stays free on the disk; with less, nothing is written", "5G"},

    Row{"parallel", "N", &Options::parallel, kPlanning, "Scheduling",
        "Sequences that decode at once, at most half of --prefill-size",
        "what the KV memory holds, at most 256"},
    Row{"queue", "N", &Options::queue, kServeOnly, "Scheduling",
        "Requests running or waiting; more are answered 429", "1024"},
    Row{"queue-timeout", "SECONDS", &Options::queue_timeout, kServeOnly, "Scheduling",
        "Answer 429 to a request that has waited so long without being begun; 0: never", "60"},
    Row{"request-timeout", "SECONDS", &Options::request_timeout, kServeOnly, "Scheduling",
        "End an answer that takes longer with an error; 0: never", "0"},
    Row{"prefill-size", "TOKENS", &Options::prefill_size, kPlanning, "Scheduling",
        "Most tokens of one step, prompt chunks included", "512"},
    Row{"max-step-ms", "MS", &Options::max_step_ms, kServeOnly, "Scheduling",
        "Cut prompts so that a step takes no longer: smoother streams, slower prompts", "no limit"},
    Row{"no-prefix-cache", "", Switch{&Options::prefix_cache, false}, kServeOnly, "Scheduling",
        "Compute every prompt from its first token", "off"},

    Row{"max-tokens", "N", &Options::max_tokens, kServeOnly, "Answers",
        "Longest chat answer when the request names none", "2048"},
    Row{"max-prompt-tokens", "N", &Options::max_prompt_tokens, kServeOnly, "Answers",
        "Refuse longer prompts with 400", "the context"},
    Row{"responses-store", "SIZE", Bytes{&Options::responses_store}, kServeOnly, "Answers",
        "Memory for responses that /v1/responses keeps, to be continued or read again; 0: none",
        "64M, or less where memory is short"},
    Row{"temp", "T", &Options::temp, kServeOnly, "Answers", "Default temperature; 0 is greedy",
        "generation_config.json's, else 1"},
    Row{"top-p", "P", &Options::top_p, kServeOnly, "Answers", "Default top-p",
        "generation_config.json's, else 1"},
    Row{"top-k", "K", &Options::top_k, kServeOnly, "Answers", "Default top-k; 0 is off",
        "generation_config.json's, else 0"},
    Row{"min-p", "P", &Options::min_p, kServeOnly, "Answers", "Default min-p",
        "generation_config.json's, else 0"},
    Row{"repeat-penalty", "R", &Options::repeat_penalty, kServeOnly, "Answers",
        "Default repetition penalty", "generation_config.json's, else 1"},

    Row{"host", "ADDRESS", &Options::host, kServeOnly, "Network", "Address to listen on",
        "127.0.0.1"},
    Row{"port", "PORT", &Options::port, kServeOnly, "Network",
        "Port to listen on; 0 takes a free one", "5413"},
    Row{"unix-socket", "PATH", &Options::unix_socket, kServeOnly, "Network",
        "Listen on this Unix socket too", "none"},
    Row{"api-key", "KEY[,KEY]", &Options::api_key, kServeOnly, "Network",
        "Require one of these keys (Authorization: Bearer KEY); may be repeated", "none"},
    Row{"api-key-file", "FILE", &Options::api_key_file, kServeOnly, "Network",
        "Keys with limits, one a line: KEY name=NAME scope=SCOPE concurrency=N "
        "requests-per-minute=N tokens-per-minute=N priority=N",
        "none"},
    Row{"tls-cert", "FILE", &Options::tls_cert, kServeOnly, "Network",
        "Speak HTTPS with this certificate chain (PEM); SIGHUP reads it again", "none"},
    Row{"tls-key", "FILE", &Options::tls_key, kServeOnly, "Network",
        "The certificate's private key (PEM, without a passphrase)", "none"},
    Row{"cors", "ORIGIN[,ORIGIN]", &Options::cors, kServeOnly, "Network",
        "Let pages of these origins call the server; '*' for all", "none"},
    Row{"max-connections", "N", &Options::max_connections, kServeOnly, "Network",
        "Open connections; more are refused", "16384, with TLS 2048"},
    Row{"max-body", "SIZE", Bytes{&Options::max_body}, kServeOnly, "Network",
        "Largest request body; a larger one gets 413",
        "32M, on small machines a hundredth of memory"},
    Row{"idle-timeout", "SECONDS", &Options::idle_timeout, kServeOnly, "Network",
        "Close a kept-alive connection after this long without a request", "120"},
    Row{"drain-seconds", "SECONDS", &Options::drain_seconds, kServeOnly, "Network",
        "After SIGTERM, cancel the answers that are still open after this long", "25"},

    Row{"prompt", "TOKENS", &Options::bench_prompt, kBenchOnly, "Benchmark",
        "Prompt length of the prefill measurement", "512"},
    Row{"decode", "TOKENS", &Options::bench_decode, kBenchOnly, "Benchmark",
        "Tokens decoded in each measurement", "128"},
    Row{"batch", "N[,N]", &Options::bench_batch, kBenchOnly, "Benchmark",
        "Sequences that decode together", "1,2,4,8,16,32"},
    Row{"depth", "N[,N]", &Options::bench_depth, kBenchOnly, "Benchmark",
        "Tokens that each sequence has before decoding is timed", "8"},
    Row{"repetitions", "N", &Options::repetitions, kBenchOnly, "Benchmark",
        "Repetitions of each measurement; the median is reported", "5"},
    Row{"json", "", Switch{&Options::json}, kBenchOnly, "Benchmark",
        "Print JSON instead of a table", "off"},
    Row{"file", "TEXT", &Options::file, kPerplexityOnly, "Perplexity", "Text to measure (UTF-8)",
        "required"},
    Row{"ctx", "TOKENS", &Options::ctx, kPerplexityOnly, "Perplexity",
        "Window: the text is cut into pieces of this many tokens", "512"},

    Row{"log-level", "debug|info|warn|error", &Options::log_level, kServeOnly, "Logging",
        "What is written to standard error", "info"},
    Row{"log-format", "text|json", &Options::log_format, kServeOnly, "Logging",
        "json: an object a line", "text"},
    Row{"trace", "FILE", &Options::trace, kServeOnly | kBenchOnly, "Logging",
        "At the end write what the threads did last, for Perfetto; bench: of streams over loopback",
        "none"},
};

struct CommandRow {
  std::string_view name;
  Command command;
  uint8_t bit;
  std::string_view help;
};
constexpr std::array kCommands = {
    CommandRow{"serve", Command::kServe, kServeOnly, "Serve the OpenAI API (the default)"},
    CommandRow{"info", Command::kInfo, kInfoToo,
               "Show a model's architecture, memory plan and kernels"},
    CommandRow{"bench", Command::kBench, kBenchOnly,
               "Measure prefill and decode speed beside the machine's limits"},
    CommandRow{"perplexity", Command::kPerplexity, kPerplexityOnly,
               "Measure a model's perplexity on a text"},
    CommandRow{"calibrate", Command::kCalibrate, kCalibrateToo,
               "Measure a model's disk, and memory, for --stream-experts"},
    CommandRow{"pack", Command::kPack, kPackOnly,
               "Write a model's experts to a bundle that --stream-experts reads faster"},
};

std::string environment_name(std::string_view option) {
  std::string name = "WEIR_";
  for (const char c : option)
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::string column(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 2), ' ');
  return text;
}

std::string flag_text(const Row& row) {
  std::string text("--");
  text.append(row.name);
  if (!row.value.empty()) text.append(" ").append(row.value);
  return text;
}

std::vector<std::string_view> groups_of(uint8_t bit) {
  std::vector<std::string_view> groups;
  for (const Row& row : kRows)
    if ((row.commands & bit) && std::ranges::find(groups, row.group) == groups.end())
      groups.push_back(row.group);
  return groups;
}

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
    out += "usage: weir " + std::string(command.name) + " [options]\n";
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
  out += "\nGeneral\n";
  out += column("  --config FILE", kWidth) + "Read options from a file (name=value lines)\n";
  out += column("  --help, --version", kWidth) + "Print this, or the version, and exit\n";
  out +=
      "\nEvery option is also an environment variable: --kv-cache is WEIR_KV_CACHE. The command\n"
      "line wins over the environment, the environment over the config file.\n";
  if (command.command == Command::kServe)
    out += "'weir COMMAND --help' shows the options of the other commands.\n";
  return out;
}

std::string unknown_flag(std::string_view flag, const CommandRow& command) {
  std::string_view name = flag;
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  name = name.substr(0, name.find('='));
  const Row* nearest = nullptr;
  size_t best = 4;  // Farther than three edits is not a typing mistake.
  for (const Row& row : kRows) {
    if (!(row.commands & command.bit)) continue;
    if (const size_t d = edit_distance(name, row.name); d < best) best = d, nearest = &row;
  }
  std::string message = "unknown option '" + std::string(flag) + "'";
  if (nearest) message += "; did you mean '--" + std::string(nearest->name) + "'?";
  return message + " ('weir " +
         (command.command == Command::kServe ? "" : std::string(command.name) + " ") +
         "--help' lists all)";
}

void add_row(CLI::App& app, Options& options, const Row& row) {
  const std::string flag = std::string("--").append(row.name);
  CLI::Option* added = nullptr;
  if (const auto* text = std::get_if<std::string Options::*>(&row.field)) {
    added = app.add_option(flag, options.*(*text));
  } else if (const auto* number = std::get_if<int32_t Options::*>(&row.field)) {
    added = app.add_option(flag, options.*(*number));
  } else if (const auto* count = std::get_if<std::optional<int32_t> Options::*>(&row.field)) {
    added = app.add_option(flag, options.*(*count));
  } else if (const auto* real = std::get_if<std::optional<double> Options::*>(&row.field)) {
    added = app.add_option(flag, options.*(*real));
  } else if (const auto* bytes = std::get_if<Bytes>(&row.field)) {
    int64_t& target = options.*(bytes->field);
    const bool automatic = bytes->automatic;
    added = app.add_option_function<std::string>(
        flag, [&target, flag, automatic](const std::string& value) {
          const std::optional<int64_t> parsed =
              automatic && value == "auto" ? 0 : parse_byte_size(value);
          if (!parsed)
            throw CLI::ValidationError(flag, std::string("expected a size such as 4G or 512M") +
                                                 (automatic ? ", or auto" : "") + "; found '" +
                                                 value + "'");
          target = *parsed;
        });
  } else {
    const Switch& on = std::get<Switch>(row.field);
    bool& target = options.*(on.field);
    added = app.add_flag_callback(flag, [&target, on] { target = on.value; });
  }
  if (row.name == "api-key") added->join(',');  // Repeated, it names several.
  added->envname(environment_name(row.name));
}

// CLI11 passes over what it does not know in a config file. Keys of other commands may stand there.
Result<void> check_config_file(CLI::App& app, const CommandRow& command) {
  const std::string path = app.get_config_ptr()->as<std::string>();
  if (path.empty()) return {};
  for (const CLI::ConfigItem& item : app.get_config_formatter()->from_file(path)) {
    if (!item.parents.empty())
      return fail(ErrorCode::kConfig, path + ": expected lines of name=value; found the section '" +
                                          item.parents.front() + "'");
    if (std::ranges::find(kRows, item.name, &Row::name) == kRows.end())
      return fail(ErrorCode::kConfig, path + ": " + unknown_flag(item.name, command));
  }
  return {};
}

// An empty variable counts as given: who writes WEIR_API_KEY= does not want a server for everybody.
bool is_given(const CLI::App& app, std::string_view name) {
  return app.get_option(std::string("--").append(name))->count() > 0 ||
         ::getenv(environment_name(name).c_str()) != nullptr;
}

}  // namespace

Result<ParsedOptions> parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  const CommandRow* command = &kCommands[0];
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && !words[0].starts_with("-")) {
    const auto found = std::ranges::find(kCommands, words[0], &CommandRow::name);
    if (found == kCommands.end()) {
      std::string list;
      for (const CommandRow& row : kCommands)
        list += (list.empty() ? "" : ", ") + std::string(row.name);
      return fail(ErrorCode::kConfig,
                  "expected a command (" + list + ") or an option; found '" + words[0] + "'");
    }
    command = &*found;
    words.erase(words.begin());
  } else if (const auto info = std::ranges::find(words, "--info"); info != words.end()) {
    command = &kCommands[1];  // As SwiftLM spells it.
    words.erase(info);
  }
  parsed.options.command = command->command;
  if (std::ranges::find(words, "--help") != words.end() ||
      std::ranges::find(words, "-h") != words.end()) {
    parsed.print = help_text(*command);
    return parsed;
  }
  if (std::ranges::find(words, "--version") != words.end()) {
    parsed.print = "weir " + std::string(kVersion) + "\n";
    return parsed;
  }

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.set_config("--config")->check(CLI::ExistingFile);
  for (const Row& row : kRows)
    if (row.commands & command->bit) add_row(app, parsed.options, row);
  try {
    std::ranges::reverse(words);  // CLI11 takes them last first.
    app.parse(words);
  } catch (const CLI::Error& error) {
    return fail(ErrorCode::kConfig, error.what());
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty())
    return fail(ErrorCode::kConfig, unknown_flag(extras.front(), *command));
  try {
    WEIR_TRY(check_config_file(app, *command));
  } catch (const CLI::Error& error) {
    return fail(ErrorCode::kConfig, error.what());
  }
  if ((command->bit & kServeOnly) && is_given(app, "api-key") &&
      split_list(parsed.options.api_key).empty())
    return fail(ErrorCode::kConfig, "--api-key: expected KEY[,KEY]; found '" +
                                        parsed.options.api_key + "', which names no key");
  if ((command->bit & kServeOnly) && is_given(app, "api-key-file") &&
      parsed.options.api_key_file.empty())
    return fail(ErrorCode::kConfig, "--api-key-file: expected a file; found an empty name");
  WEIR_TRY(check_options(parsed.options));
  return parsed;
}

std::string options_page() {
  std::string out =
      "# Options\n\nMade from the table in `src/options.cpp`; a test keeps them equal.\n";
  for (const std::string_view group : groups_of(kEvery)) {
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
      out += "| `" + flag + "` | `" + environment_name(row.name) + "` | " +
             std::string(row.fallback) + " | " + std::string(row.help) + " | " + commands + " |\n";
    }
  }
  return out;
}

}  // namespace weir
