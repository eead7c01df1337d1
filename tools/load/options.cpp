// weir-load's command line, with CLI11.
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>

namespace weir::load {

namespace {

// "64" or "64:256".
std::string parse_range(const std::string& text, Range& out) {
  const size_t colon = text.find(':');
  const auto number = [&](size_t begin, size_t end, int32_t& value) {
    const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && rest == text.data() + end;
  };
  const size_t first_end = std::min(colon, text.size());
  if (!number(0, first_end, out.low)) return "expected N or LOW:HIGH, found " + text;
  out.high = out.low;
  if (colon != std::string::npos && !number(colon + 1, text.size(), out.high))
    return "expected N or LOW:HIGH, found " + text;
  if (out.low < 1 || out.high < out.low || out.high > 1'000'000)
    return "expected 1 <= LOW <= HIGH <= 1000000, found " + text;
  return {};
}

// "long=0.1:3000:32".
std::string parse_class(const std::string& text, MixClass& out) {
  const std::string expected = "expected NAME=SHARE:WORDS:TOKENS with 0 < SHARE < 1, found " + text;
  const size_t equals = text.find('='), first = text.find(':', equals + 1);
  const size_t second = text.find(':', first + 1);
  if (equals == std::string::npos || equals == 0 || first == std::string::npos ||
      second == std::string::npos)
    return expected;
  out.name = text.substr(0, equals);
  const char* share_end = text.data() + first;
  const auto [rest, error] = std::from_chars(text.data() + equals + 1, share_end, out.share);
  if (error != std::errc() || rest != share_end || !(out.share > 0) || !(out.share < 1) ||
      out.name == kRestName)
    return expected;
  std::string wrong = parse_range(text.substr(first + 1, second - first - 1), out.prompt_words);
  if (wrong.empty()) wrong = parse_range(text.substr(second + 1), out.output_tokens);
  return wrong;
}

void add_mix(CLI::App& app, std::vector<MixClass>& mix) {
  app.add_option_function<std::vector<std::string>>(
         "--mix",
         [&mix](const std::vector<std::string>& texts) {
           double shares = 0;
           for (const std::string& text : texts) {
             const std::string error = parse_class(text, mix.emplace_back());
             if (!error.empty()) throw CLI::ValidationError("--mix", error);
             shares += mix.back().share;
           }
           if (shares >= 1) throw CLI::ValidationError("--mix", "the shares leave nothing");
         },
         "Another class of requests; repeatable, figures for each")
      ->type_name("NAME=SHARE:WORDS:TOKENS")
      ->allow_extra_args(false);
}

void add_range(CLI::App& app, const std::string& name, Range& range, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&range, name](const std::string& text) {
           const std::string error = parse_range(text, range);
           if (!error.empty()) throw CLI::ValidationError(name, error);
         },
         help)
      ->type_name("N|LOW:HIGH")
      ->default_str(std::to_string(range.low) + ":" + std::to_string(range.high));
}

void add_target(CLI::App& app, LoadOptions& o) {
  app.add_option("--host", o.host, "Address or name of the server")->capture_default_str();
  app.add_option("--port", o.port, "Port of the server")->capture_default_str();
  app.add_option_function<std::string>(
         "--url",
         [&o](const std::string& text) {
           const std::string error = o.set_url(text);
           if (!error.empty()) throw CLI::ValidationError("--url", error);
         },
         "The server's address instead of host and port: https://HOST[:PORT]")
      ->type_name("URL");
  app.add_option("--ca,--cacert", o.ca_file,
                 "Certificates (PEM) to trust instead of the system's, for https");
  app.add_flag("-k,--insecure", o.insecure, "Trust any certificate, for https");
  app.add_option("--unix", o.unix_path, "Unix socket of the server, instead of host and port");
  app.add_option("--api-key", o.api_key, "Sent as a bearer token")->envname("WEIR_API_KEY");
  app.add_option("--model", o.model, "Model to ask for (default: the first of /v1/models)");
}

void add_load(CLI::App& app, LoadOptions& o) {
  app.add_option("--clients", o.clients,
                 "Closed loop: clients, each with one request at a time (0 with --idle alone)")
      ->check(CLI::Range(0, 20'000))
      ->capture_default_str();
  app.add_option("--requests", o.requests,
                 "Requests of each client; with --rate, requests in all (default 16, or no limit "
                 "with --duration)")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000'000}));
  app.add_option("--duration", o.duration_s, "Seconds during which requests are begun")
      ->check(CLI::Range(0.01, 86'400.0));
  app.add_option("--rate", o.rate, "Open loop: requests a second, whatever the server does")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--burstiness", o.burstiness,
                 "Open loop: shape of the gamma-distributed gaps; 1 is Poisson, less is burstier")
      ->check(CLI::Range(0.01, 1000.0))
      ->capture_default_str();
  app.add_option("--connections-max", o.connections_max,
                 "Open loop: requests at the same time; arrivals beyond are counted, not sent")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "Requests before the measurement, not measured")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
      ->capture_default_str();
  app.add_flag("--drop-first", o.drop_first,
               "Leave the first request of each client out of the figures");
  app.add_option("--idle", o.idle, "Idle connections held meanwhile")->check(CLI::Range(0, 60'000));
  app.add_option("--timeout", o.timeout_s, "Seconds a request may take")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
}

void add_work(CLI::App& app, LoadOptions& o) {
  const std::map<std::string, bool> endpoints{{"chat", true}, {"completions", false}};
  app.add_option("--endpoint", o.chat, "chat or completions")
      ->transform(CLI::CheckedTransformer(endpoints))
      ->type_name("NAME")
      ->default_str("chat");
  app.add_flag("!--no-stream", o.stream, "Ask for whole answers; TTFT is then the whole time");
  app.add_flag("!--stop-at-eos", o.ignore_eos,
               "Let answers end by themselves: do not send ignore_eos");
  add_range(app, "--prompt-words", o.prompt_words, "Words of a prompt, uniformly distributed");
  add_range(app, "--output-tokens", o.output_tokens, "max_tokens of a request, likewise");
  add_mix(app, o.mix);
  app.add_option("--prefix-words", o.prefix_words,
                 "Words that all prompts begin with, before their own")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--sessions", o.sessions,
                 "Conversations that go on at once: each request holds all that came before it, "
                 "and names its conversation in x-session-id")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--turns", o.turns, "With --sessions: requests of a conversation")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--temperature", o.temperature, "Sampling temperature")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "The same seed makes the same work")->capture_default_str();
  app.add_option("--abort-share", o.abort_share, "Share of streams broken off on the way")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

void add_report(CLI::App& app, LoadOptions& o) {
  app.add_option("--slo-ttft", o.slo_ttft_ms, "Goodput: time to the first token, at most, in ms");
  app.add_option("--slo-tpot", o.slo_tpot_ms, "Goodput: time per output token, at most, in ms");
  app.add_option("--slo-e2e", o.slo_e2e_ms, "Goodput: time of the whole answer, at most, in ms");
  app.add_option("--pid", o.pid, "The server's process, for its CPU time and memory");
  app.add_option("--json", o.json_path, "Write the figures to this file ('-': standard output)");
  app.add_option("--log", o.log_path,
                 "Write a line of JSON for each measured request to this file");
}

}  // namespace

std::optional<LoadOptions> parse_options(int argc, char** argv, int* status) {
  LoadOptions o;
  CLI::App app(
      "weir-load: load for an OpenAI-compatible server, and how it bore it.\n"
      "Closed loop (--clients): each client waits for its answer. Open loop (--rate): requests "
      "come\n"
      "when they come; only this shows overload.\n");
  app.footer(
      "Examples:\n"
      "  weir-load --clients 8 --requests 20\n"
      "  weir-load --url https://weir.example --ca ca.pem --clients 8\n"
      "  weir-load --rate 20 --duration 30 --slo-ttft 200 --slo-tpot 50 --json run.json\n"
      "  weir-load --rate 4 --duration 30 --mix long=0.1:2500:32 --slo-e2e 5000\n"
      "  weir-load --clients 0 --idle 10000 --duration 30\n"
      "Times are in milliseconds. TTFT: first token. TPOT: (E2E - TTFT) / (tokens - 1) of a "
      "request.\n"
      "ITL: every gap between two pieces of text. E2E: the whole request. Open loop: from the "
      "moment\n"
      "a request was due, not from when it could be sent.\n"
      "Exit status: 0, 1 if a request failed other than by 429 or 503, 2 if nothing could be "
      "done.");
  app.set_help_flag("-h,--help", "Print this and exit");
  add_target(app, o);
  add_load(app, o);
  add_work(app, o);
  add_report(app, o);
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
    if (o.abort_share > 0 && !o.stream)
      throw CLI::ValidationError("--abort-share", "needs streams: leave out --no-stream");
    if (o.sessions > 0 && !o.mix.empty())
      throw CLI::ValidationError("--sessions", "has no classes: leave out --mix");
    if (o.clients == 0 && o.rate == 0 && o.idle == 0)
      throw CLI::ValidationError("--clients", "0 makes sense only with --idle or --rate");
    if (o.clients == 0 && o.rate == 0 && o.duration_s == 0)
      throw CLI::ValidationError("--idle", "alone needs --duration");
  } catch (const CLI::ParseError& error) {
    *status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (o.requests == 0 && o.duration_s == 0) o.requests = 16;
  return o;
}

}  // namespace weir::load
