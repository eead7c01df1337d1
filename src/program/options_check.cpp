// What values options may have.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <vector>

#include "api/access/cors.h"
#include "api/access/guard.h"
#include "api/openai/request_fields.h"
#include "api/output/call_format.h"
#include "base/check.h"
#include "card/adapter_card.h"
#include "model/adapted_rows.h"
#include "program/media_hosts.h"
#include "program/options.h"
#include "sched/draft_source.h"

namespace weir {

namespace {

constexpr double kIntMax = 2147483647;
// Four segments of the prompt cache (kv/disk/store.h): one goes as a whole.
constexpr int64_t kDiskCacheLeast = int64_t{1} << 30;

Result<void> one_of(const char* flag, const std::string& value,
                    const std::vector<std::string_view>& allowed) {
  std::string list;
  for (const std::string_view each : allowed) {
    if (value == each) return {};
    list += list.empty() ? "" : ", ";
    list += each;
  }
  return fail(ErrorCode::kConfig,
              std::string(flag) + ": expected one of " + list + "; found '" + value + "'");
}

std::vector<std::string_view> tool_parsers() {
  std::vector<std::string_view> names = {"auto", "none"};
  for (const api::output::CallFormat& format : api::output::call_formats())
    names.push_back(format.name);
  return names;
}

Result<void> in_range(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  const auto text = [](double number) {
    char buffer[32];
    return std::string(
        buffer,
        std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::general, 12).ptr);
  };
  return fail(ErrorCode::kConfig, std::string(flag) + ": expected a number from " + text(low) +
                                      " to " + text(high) + "; found " + text(value));
}

Result<void> check_origins(const std::string& origins) {
  for (const std::string& origin : split_list(origins))
    if (origin != "*" && !api::is_origin(origin))
      return fail(ErrorCode::kConfig,
                  "--cors: expected '*', or origins as browsers send them, such as "
                  "https://chat.example or http://localhost:3000 (in lower case; without a path, a "
                  "'/' at the end or the default port); found '" +
                      origin + "'");
  return {};
}

Result<void> check_hosts(const std::string& hosts) {
  for (const std::string& host : split_list(hosts))
    if (!api::is_host_pattern(host))
      return fail(ErrorCode::kConfig,
                  "--allowed-hosts: expected '*', or names such as weir, llm.example or "
                  "*.svc.cluster.local (without a scheme, a port or a path); found '" +
                      host + "'");
  return {};
}

// A default of requests may be what a request may say.
Result<void> in_range_of_field(const SamplingOption& option) {
  if (!option.value) return {};
  const auto field = std::ranges::find(api::openai::request_fields(), option.field,
                                       &api::openai::RequestField::name);
  CHECK(field != api::openai::request_fields().end());
  return in_range(option.flag, *option.value, field->min, field->max);
}

Result<void> check_experts(const ExpertOptions& o, Command command) {
  if (o.ssd_io == ExpertReads::kPageCache && command != Command::kBench)
    return fail(ErrorCode::kConfig,
                "--ssd-io: expected one of auto, pread, buffered; found 'page-cache', which is for "
                "weir bench");
  for (const auto& [flag, value] : {std::pair{"--stream-budget", &o.stream_budget},
                                    {"--routing", &o.routing},
                                    {"--route-trace", &o.route_trace}})
    if (!o.stream_experts && !value->empty())
      return fail(ErrorCode::kConfig, std::string(flag) + ": expected --stream-experts beside it");
  if (!o.stream_experts && o.expert_memory > 0)
    return fail(ErrorCode::kConfig, "--expert-memory: expected --stream-experts beside it");
  return {};
}

Result<void> check_quantising(const Options& o) {
  const auto number_of = [](const char* flag, int32_t value,
                            std::initializer_list<int32_t> allowed) {
    if (std::ranges::count(allowed, value) > 0) return Result<void>();
    std::string list;
    for (const int32_t number : allowed)
      if (number != 0) list.append(list.empty() ? "" : ", ").append(std::to_string(number));
    return Result<void>(fail(ErrorCode::kConfig, std::string(flag) + ": expected one of " + list +
                                                     "; found " + std::to_string(value)));
  };
  WEIR_TRY(number_of("--quantize", o.quantize, {0, 2, 3, 4, 5, 6, 8}));
  WEIR_TRY(number_of("--bits", o.bits, {2, 3, 4, 5, 6, 8}));
  WEIR_TRY(number_of("--group", o.group, {32, 64, 128}));
  if (!o.like.empty() && !o.rule.empty())
    return fail(ErrorCode::kConfig, "--like: expected no --rule beside it, found one");
  return {};
}

Result<void> check_speculative(const SpeculativeOptions& o) {
  if (o.draft_bits != 0 && o.draft_bits != 4 && o.draft_bits != 8)
    return fail(ErrorCode::kConfig,
                "--draft-bits: expected 0, 4 or 8, found " + std::to_string(o.draft_bits));
  WEIR_TRY(in_range("--draft-vocabulary", o.draft_vocabulary, 0, kIntMax));
  return in_range("--num-draft-tokens", o.num_draft_tokens, 1, sched::DraftSource::kDraftsMax);
}

Result<void> check_adapters(const AdapterOptions& o) {
  WEIR_TRY(in_range("--max-loras", o.max_loras, 1, model::kAdaptersInPass));
  WEIR_TRY(in_range("--max-cpu-loras", o.max_cpu_loras, 0, 4096));
  WEIR_TRY(in_range("--max-lora-rank", o.max_lora_rank, 1, card::kAdapterRankMax));
  if (std::ssize(o.lora_modules) > o.adapters_max())
    return fail(ErrorCode::kConfig,
                "--max-cpu-loras: expected at least " + std::to_string(o.lora_modules.size()) +
                    ", one for each of --lora-modules; found " + std::to_string(o.max_cpu_loras));
  return {};
}

Result<void> check_network(const NetworkOptions& o) {
  if (o.tls_cert.empty() != o.tls_key.empty())
    return fail(ErrorCode::kConfig, std::string("--tls-cert and --tls-key: expected both; found ") +
                                        (o.tls_cert.empty() ? "only a key" : "only a certificate"));
  WEIR_TRY(in_range("--port", o.port, 0, 65535));
  WEIR_TRY(in_range("--max-connections", o.max_connections, 0, 1 << 20));
  WEIR_TRY(in_range("--max-body", static_cast<double>(o.max_body), 0, double{1 << 30}));
  WEIR_TRY(in_range("--idle-timeout", o.idle_timeout, 1, 86400));
  WEIR_TRY(in_range("--drain-seconds", o.drain_seconds, 0, 86400));
  WEIR_TRY(in_range("--drain-delay", o.drain_delay, 0, 86400));
  WEIR_TRY(check_origins(o.cors));
  WEIR_TRY(check_hosts(o.allowed_hosts));
  return {};
}

Result<void> check_media(const MediaOptions& o) {
  constexpr double kImagesMax = 1024;
  constexpr int64_t kImageMemoryLeast = int64_t{16} << 20;  // For pictures of half a megapixel.
  WEIR_TRY(in_range("--max-images", o.max_images, 1, kImagesMax));
  if (o.image_memory != 0 && o.image_memory < kImageMemoryLeast)
    return fail(ErrorCode::kConfig, "--image-memory: expected at least 16M, found " +
                                        std::to_string(o.image_memory) + " bytes");
  if (const auto hosts = MediaHosts::parse(split_list(o.allow_remote_media)); !hosts)
    return tl::unexpected<Error>(hosts.error());
  std::error_code error;
  if (!o.media_path.empty() && !std::filesystem::is_directory(o.media_path, error))
    return fail(ErrorCode::kConfig,
                "--media-path: expected a folder, found '" + o.media_path + "'");
  return {};
}

Result<void> check_bench(const BenchOptions& o) {
  WEIR_TRY(in_range("--prompt", o.bench_prompt, 1, 1 << 20));
  WEIR_TRY(in_range("--decode", o.bench_decode, 1, 1 << 20));
  WEIR_TRY(in_range("--repetitions", o.repetitions, 1, 1000));
  return {};
}

Result<void> check_suite(const Options& o) {
  if (o.hours) WEIR_TRY(in_range("--hours", *o.hours, 0.001, 1000));
  if (!o.url.empty() && !o.model.empty())
    return fail(ErrorCode::kConfig, "--url: expected no --model beside it; found '" + o.model +
                                        "' (the server at that address has its own)");
  return {};
}

Result<void> check_model_set(const Options& o) {
  if (!o.models.empty() && !o.model.empty())
    return fail(ErrorCode::kConfig, "--models: expected no --model beside it; found '" + o.model +
                                        "' (the file names the models)");
  if (!o.models.empty() && !o.lora_modules.empty())
    return fail(
        ErrorCode::kConfig,
        "--models: expected no --lora-modules beside it: an adapter is for one model, whose "
        "section in the file names it");
  WEIR_TRY(in_range("--idle-unload", o.idle_unload, 0, kIntMax));
  WEIR_TRY(in_range("--load-timeout", o.load_timeout, 1, 86400));
  return in_range("--load-stay", o.load_stay, 0, 86400);
}

}  // namespace

std::vector<SamplingOption> sampling_options(const SamplingOptions& o) {
  return {{"--temp", "temperature", o.temp},
          {"--top-p", "top_p", o.top_p},
          {"--top-k", "top_k", o.top_k},
          {"--min-p", "min_p", o.min_p},
          {"--typical", "typical_p", o.typical},
          {"--repeat-penalty", "repeat_penalty", o.repeat_penalty},
          {"--repeat-last-n", "repeat_last_n", o.repeat_last_n},
          {"--top-n-sigma", "top_n_sigma", o.top_n_sigma},
          {"--xtc-probability", "xtc_probability", o.xtc_probability},
          {"--xtc-threshold", "xtc_threshold", o.xtc_threshold},
          {"--dynatemp-range", "dynatemp_range", o.dynatemp_range},
          {"--dynatemp-exp", "dynatemp_exponent", o.dynatemp_exp},
          {"--dry-multiplier", "dry_multiplier", o.dry_multiplier},
          {"--dry-base", "dry_base", o.dry_base},
          {"--dry-allowed-length", "dry_allowed_length", o.dry_allowed_length},
          {"--dry-penalty-last-n", "dry_penalty_last_n", o.dry_penalty_last_n}};
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view part = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (part.starts_with(' ') || part.starts_with('\t')) part.remove_prefix(1);
    while (part.ends_with(' ') || part.ends_with('\t')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

Result<void> check_options(const Options& o) {
  WEIR_TRY(one_of("--reasoning-format", o.reasoning_format, {"auto", "deepseek", "none"}));
  WEIR_TRY(in_range("--reasoning-budget", o.reasoning_budget, -1, kIntMax));
  WEIR_TRY(one_of("--tool-parser", o.tool_parser, tool_parsers()));
  WEIR_TRY(one_of("--reranker", o.reranker, {"auto", "yes-no", "none"}));
  WEIR_TRY(in_range("--threads", o.threads, 0, 1024));
  WEIR_TRY(in_range("--ctx-size", o.ctx_size, 0, kIntMax));
  WEIR_TRY(in_range("--parallel", o.parallel, 0, kPrefillSizeMax / 2));
  WEIR_TRY(in_range("--queue", o.queue, 1, 1 << 20));
  WEIR_TRY(in_range("--cache-idle", o.cache_idle, 0, kIntMax));
  WEIR_TRY(one_of("weir cache", o.cache_action, {"list", "clear"}));
  if (o.disk_cache != 0 && o.disk_cache < kDiskCacheLeast)
    return fail(ErrorCode::kConfig, "--disk-cache: expected 1G at least, four files of it; found " +
                                        std::to_string(o.disk_cache) + " bytes");
  WEIR_TRY(in_range("--queue-timeout", o.queue_timeout, 0, 86400));
  WEIR_TRY(in_range("--request-timeout", o.request_timeout, 0, 7 * 86400));
  WEIR_TRY(in_range("--prefill-size", o.prefill_size, 32, kPrefillSizeMax));
  if (o.parallel > o.prefill_size / 2)
    return fail(ErrorCode::kConfig, "--parallel: expected at most half of --prefill-size, " +
                                        std::to_string(o.prefill_size / 2) + "; found " +
                                        std::to_string(o.parallel) +
                                        " (left out, --prefill-size grows with --parallel)");
  if (o.max_step_ms) WEIR_TRY(in_range("--max-step-ms", *o.max_step_ms, 0, 60'000));
  for (const SamplingOption& option : sampling_options(o)) WEIR_TRY(in_range_of_field(option));
  WEIR_TRY(in_range("--max-tokens", o.max_tokens, 1, kIntMax));
  WEIR_TRY(in_range("--max-prompt-tokens", o.max_prompt_tokens, 0, kIntMax));
  WEIR_TRY(check_experts(o, o.command));
  WEIR_TRY(check_quantising(o));
  WEIR_TRY(check_speculative(o));
  WEIR_TRY(check_adapters(o));
  WEIR_TRY(check_network(o));
  WEIR_TRY(check_media(o));
  WEIR_TRY(check_bench(o));
  WEIR_TRY(check_model_set(o));
  if (o.turbo_kv && o.kv_cache && *o.kv_cache != kv::Format::kTq4)
    return fail(ErrorCode::kConfig,
                std::string("--turbo-kv means --kv-cache tq4; expected no other "
                            "beside it, found --kv-cache ") +
                    o.kv_cache->name());
  if (o.against_kv && !o.against.empty())
    return fail(ErrorCode::kConfig,
                "--against-kv: expected no --against beside it; found '" + o.against + "'");
  WEIR_TRY(check_suite(o));
  WEIR_TRY(in_range("--ctx", o.ctx, 0, kIntMax));
  WEIR_TRY(in_range("--tokens", o.tokens, 0, kIntMax));
  if (o.command == Command::kPerplexity && o.file.empty())
    return fail(ErrorCode::kConfig, "weir perplexity: expected --file TEXT; found none");
  return {};
}

}  // namespace weir
