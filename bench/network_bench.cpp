// network_bench: what the network side of Weir costs, beside what the operating system alone takes
// for the same bytes in the same run (one thread, epoll, read, write).
//
//   network_bench [--streams N] [--rounds N] [--model DIR] [--json FILE] [--only
//   events|requests|decode]
//
// 1. Events: N streams of chat completions, a token each a step. The model is a stand-in that takes
//    no time; from the sampler to the socket everything is Weir's. Processor time of the loop's
//    thread per event, user and system.
// 2. Small requests: GET over kept-alive connections.
// 3. Decode: N streams of a real model (the one compiled in, or --model), beside the same engine
//    with the same sequences and nobody who reads them.
//
// Clients are processes of their own. Rounds of Weir and its peer take turns; medians are printed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "net/file_limit.h"
#include "network/bare_server.h"
#include "network/cpu_time.h"
#include "network/decode_cost.h"
#include "network/stand_in_model.h"
#include "network/swarm.h"
#include "network/weir_bed.h"

namespace weir::bench {
namespace {

// No multiple of the kernel's tick (cpu_time.h), and long enough for 1,000 writes, so that no step
// catches up with the one before: a stream that gets two tokens in one write costs half.
constexpr int64_t kPeriodUs = 14'300;
// Of Weir's rounds, those in which it fell behind nevertheless, because others had the processor,
// are thrown away.
constexpr double kEventsPerWriteMax = 1.1;
constexpr int32_t kAttempts = 5;
constexpr int32_t kTokens = 256;
constexpr int32_t kMarginSteps = 16;
constexpr int32_t kRequestClients = 64, kRequestsEach = 1500;
constexpr int32_t kDecodeTokens = 128;

struct BenchOptions {
  int32_t streams = 1000;
  int32_t rounds = 5;
  std::string model, json, only;
  bool runs(std::string_view part) const { return only.empty() || only == part; }
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Of one thing in all rounds.
struct Series {
  std::vector<double> user, system, total;
  void add(const CpuTime& cpu) {
    user.push_back(cpu.user_us);
    system.push_back(cpu.system_us);
    total.push_back(cpu.total_us());
  }
  CpuTime median_each() const { return {median(user), median(system)}; }
};

double median_ratio(const Series& a, const Series& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.total.size(); ++i) ratios.push_back(a.total[i] / b.total[i]);
  return median(ratios);
}

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "network_bench: %s\n", message.c_str());
  std::exit(1);
}

SwarmResult wait(Swarm& swarm) {
  Result<SwarmResult> result = swarm.wait();
  if (!result) die(result.error().message);
  return *result;
}

std::unique_ptr<text::Tokenizer> load_tokenizer(const card::ModelCard& card) {
  const auto file = card.open_tokenizer();
  if (!file) die(file.error().message);
  auto tokenizer = text::Tokenizer::load_file(file->name, file->view.text(), file->config);
  if (!tokenizer) die(tokenizer.error().message);
  return std::move(*tokenizer);
}

std::string chat_body(int32_t tokens) {
  return R"({"messages":[{"role":"user","content":"Tell me a short story."}],"stream":true,)"
         R"("temperature":0,"ignore_eos":true,"max_tokens":)" +
         std::to_string(tokens) + "}";
}

sched::RunnerOptions runner_options(int32_t streams, int32_t context_max, int32_t tokens_each) {
  sched::RunnerOptions runner;
  runner.engine.step_tokens_max = StandInModel::kRowsMax;
  runner.engine.running_max = streams;
  runner.engine.queue_max = std::max(streams, 64);
  runner.engine.context_max = context_max;
  runner.engine.prefix_cache = false;
  runner.page_count = (tokens_each / kernels::kPageTokens + 3) * (streams + 1);
  return runner;
}

struct EventFigures {
  Series weir, bare;
  double events_per_write = 0, bytes_per_write = 0;
  double finish_ratio = 0;  // The worst round's.
  double ratio() const { return median_ratio(weir, bare); }
};

// One round of Weir: N streams, measured while all of them decode.
CpuTime weir_events(const BenchOptions& options, const text::Tokenizer& tokenizer,
                    EventFigures& figures) {
  StandInModel model(tokenizer, kPeriodUs);
  sched::RunnerOptions runner = runner_options(options.streams, StandInModel::kContextMax, kTokens);
  WeirBed bed(model, kernels::ops_for(*kernels::choose_isa({})), runner, tokenizer);
  struct Mark {
    CpuTime cpu;
    uint64_t tokens = 0;
  };
  Mark begin, end;  // Written and at last read by the loop's thread, or after it.
  const auto mark = [&bed](Mark& into) {
    bed.loop().post([&] { into = {thread_cpu(), bed.engine_stats().generated_tokens.value()}; });
  };
  int32_t full_steps = 0;
  model.on_step = [&](int64_t samples, int64_t rows) {
    if (samples != options.streams || rows != options.streams) return;
    ++full_steps;
    if (full_steps == kMarginSteps) mark(begin);
    if (full_steps > kMarginSteps) mark(end);
  };
  Swarm swarm =
      Swarm::streams(bed.port(), options.streams, "/v1/chat/completions", chat_body(kTokens));
  const SwarmResult result = wait(swarm);
  // A role, the tokens, a reason and [DONE].
  if (result.streams != options.streams ||
      result.events != int64_t{options.streams} * (kTokens + 3))
    die("expected " + std::to_string(int64_t{options.streams} * (kTokens + 3)) + " events, found " +
        std::to_string(result.events));
  figures.events_per_write =
      static_cast<double>(result.events) / static_cast<double>(result.chunks);
  figures.bytes_per_write = static_cast<double>(result.bytes) / static_cast<double>(result.chunks);
  figures.finish_ratio = std::max(figures.finish_ratio, result.slowest_s / result.fastest_s);
  bed.cpu();  // The marks are done.
  if (end.tokens <= begin.tokens) die("the streams were never all open at once");
  return (end.cpu - begin.cpu) / static_cast<double>(end.tokens - begin.tokens);
}

EventFigures measure_events(const BenchOptions& options, const text::Tokenizer& tokenizer) {
  EventFigures figures;
  for (int32_t round = 0; round < options.rounds; ++round) {
    CpuTime weir;
    for (int32_t attempt = 0; attempt < kAttempts; ++attempt) {
      weir = weir_events(options, tokenizer, figures);
      if (figures.events_per_write < kEventsPerWriteMax) break;
    }
    figures.weir.add(weir);
    BareServer server;
    Swarm swarm = Swarm::streams(server.port(), options.streams, "/", "x");
    const BareResult bare = server.run_streams(options.streams, kTokens, kMarginSteps, kPeriodUs,
                                               static_cast<int64_t>(figures.bytes_per_write));
    wait(swarm);
    figures.bare.add(bare.cpu / static_cast<double>(bare.writes));
  }
  return figures;
}

struct RequestFigures {
  std::string path;
  Series weir, bare;
  int64_t response_bytes = 0;
  double ratio() const { return median_ratio(weir, bare); }
};

RequestFigures measure_requests(const BenchOptions& options, const text::Tokenizer& tokenizer,
                                const std::string& path) {
  RequestFigures figures;
  figures.path = path;
  for (int32_t round = 0; round < options.rounds; ++round) {
    StandInModel model(tokenizer, kPeriodUs);
    WeirBed bed(model, kernels::ops_for(*kernels::choose_isa({})),
                runner_options(64, StandInModel::kContextMax, kTokens), tokenizer);
    const CpuTime before = bed.cpu();
    Swarm swarm = Swarm::requests(bed.port(), kRequestClients, path, kRequestsEach);
    const SwarmResult result = wait(swarm);
    figures.weir.add((bed.cpu() - before) / static_cast<double>(result.requests));
    figures.response_bytes = result.response_bytes;

    BareServer server;
    Swarm peer = Swarm::requests(server.port(), kRequestClients, path, kRequestsEach);
    const BareResult bare = server.run_requests(kRequestClients, figures.response_bytes);
    wait(peer);
    figures.bare.add(bare.cpu / static_cast<double>(bare.writes));
  }
  return figures;
}

void print_head() {
  std::printf("\n%-26s %24s   %24s   %5s\n", "us of processor time", "Weir: user  system  both",
              "bare: user  system  both", "ratio");
}

void print_row(const std::string& what, const Series& weir, const Series& bare, double ratio) {
  const CpuTime w = weir.median_each(), b = bare.median_each();
  std::printf("%-26s %11.2f %7.2f %5.2f   %11.2f %7.2f %5.2f   %5.2f\n", what.c_str(), w.user_us,
              w.system_us, median(weir.total), b.user_us, b.system_us, median(bare.total), ratio);
}

void write_series(JsonWriter& json, std::string_view name, const Series& series) {
  json.key(name).begin_object();
  json.field("user_us", median(series.user)).field("system_us", median(series.system));
  json.key("rounds_us").begin_array();
  for (const double value : series.total) json.value(value);
  json.end_array().end_object();
}

void tell_events(const EventFigures& figures, JsonWriter& json) {
  print_head();
  print_row("streamed event", figures.weir, figures.bare, figures.ratio());
  std::printf("  %.2f events and %.0f bytes a write; slowest to fastest stream %.3f\n",
              figures.events_per_write, figures.bytes_per_write, figures.finish_ratio);
  json.key("event").begin_object();
  write_series(json, "weir", figures.weir);
  write_series(json, "bare", figures.bare);
  json.field("ratio", figures.ratio()).field("events_per_write", figures.events_per_write);
  json.field("bytes_per_write", figures.bytes_per_write);
  json.field("finish_ratio", figures.finish_ratio).end_object();
}

void tell_requests(const RequestFigures& figures, JsonWriter& json) {
  print_row("GET " + figures.path, figures.weir, figures.bare, figures.ratio());
  json.begin_object().field("path", figures.path);
  write_series(json, "weir", figures.weir);
  write_series(json, "bare", figures.bare);
  json.field("ratio", figures.ratio());
  json.field("response_bytes", figures.response_bytes).end_object();
}

template <class T, class Member>
double median_of(const std::vector<T>& rounds, Member member) {
  std::vector<double> values;
  for (const T& round : rounds) values.push_back(std::invoke(member, round));
  return median(values);
}

void tell_decode(const DecodeCost& cost, int32_t streams, JsonWriter& json) {
  std::vector<double> wall, cpu;
  for (size_t i = 0; i < cost.alone.size(); ++i) {
    wall.push_back(1 - cost.served[i].wall / cost.alone[i].wall);
    cpu.push_back(1 - cost.alone[i].cpu_us / cost.served[i].cpu_us);
  }
  const double user = median_of(cost.loop, &CpuTime::user_us);
  const double system = median_of(cost.loop, &CpuTime::system_us);
  std::printf("\n%d streams of %s, %d threads, tokens/s: engine alone %.0f, served %.0f\n", streams,
              cost.model.c_str(), cost.threads, median_of(cost.alone, &DecodeRate::wall),
              median_of(cost.served, &DecodeRate::wall));
  std::printf("  processor time a token: alone %.1f us, served %.1f us: decode costs %.1f %%\n",
              median_of(cost.alone, &DecodeRate::cpu_us),
              median_of(cost.served, &DecodeRate::cpu_us), 100 * median(cpu));
  std::printf("  of the tokens a second, with the clients on the same cores: %.1f %%\n",
              100 * median(wall));
  std::printf("  per event: loop %.2f us user, %.2f us system; clients %.2f us\n", user, system,
              cost.client_us);
  std::printf("  %.2f events a write; slowest to fastest stream %.3f\n",
              median(cost.events_per_write), std::ranges::max(cost.finish_ratio));
  std::printf("  other processes: %.0f %% of the cores\n",
              100 * std::max(median_of(cost.alone, &DecodeRate::others),
                             median_of(cost.served, &DecodeRate::others)));
  json.key("decode").begin_object().field("model", cost.model).field("threads", cost.threads);
  json.field("alone_tokens_s", median_of(cost.alone, &DecodeRate::wall));
  json.field("served_tokens_s", median_of(cost.served, &DecodeRate::wall));
  json.field("alone_us", median_of(cost.alone, &DecodeRate::cpu_us));
  json.field("served_us", median_of(cost.served, &DecodeRate::cpu_us));
  json.field("cost", median(cpu)).field("cost_with_clients", median(wall));
  json.field("loop_user_us", user).field("loop_system_us", system);
  json.field("client_us", cost.client_us);
  json.field("events_per_write", median(cost.events_per_write));
  json.field("finish_ratio", std::ranges::max(cost.finish_ratio)).end_object();
}

BenchOptions parse(const std::vector<std::string>& arguments) {
  BenchOptions options;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    if (i + 1 == arguments.size()) die(name + ": expected a value");
    const std::string& value = arguments[i + 1];
    if (name == "--streams") {
      options.streams = std::clamp(std::atoi(value.c_str()), 1, 1024);
    } else if (name == "--rounds") {
      options.rounds = std::clamp(std::atoi(value.c_str()), 1, 100);
    } else if (name == "--model") {
      options.model = value;
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--only") {
      options.only = value;
    } else {
      die("unknown option " + name +
          "; expected --streams, --rounds, --model, --json or --only events|requests|decode");
    }
  }
  return options;
}

int run(const BenchOptions& options) {
  log::configure(log::Level::kWarn);
  net::raise_file_limit();
  const auto tokenizer = load_tokenizer(*card::ModelCard::open(card::default_model()));
  const double begin_s = now_s(), busy_us = machine_busy_us();
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("processor", kernels::processor_name()).field("cores", cores());
  json.field("streams", options.streams).field("rounds", options.rounds);
  std::printf("%s, %d cores; %d streams, %d rounds\n", kernels::processor_name().c_str(), cores(),
              options.streams, options.rounds);
  if (options.runs("events")) tell_events(measure_events(options, *tokenizer), json);
  if (options.runs("requests")) {
    print_head();
    json.key("requests").begin_array();
    for (const char* path : {"/health", "/nothing", "/v1/models"})
      tell_requests(measure_requests(options, *tokenizer, path), json);
    json.end_array();
  }
  if (options.runs("decode")) {
    const auto cost =
        measure_decode_cost(options.model, options.streams, kDecodeTokens, options.rounds);
    if (!cost) die(cost.error().message);
    tell_decode(*cost, options.streams, json);
  }
  const double others_us =
      machine_busy_us() - busy_us - process_cpu().total_us() - children_cpu().total_us();
  const double others = others_us / (1e6 * (now_s() - begin_s) * cores());
  std::printf("\nother processes: %.0f %% of the cores in the whole run\n", 100 * others);
  json.field("others", others).end_object();
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << out << '\n';
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--swarm")
    return weir::bench::run_swarm({arguments.begin() + 1, arguments.end()});
  return weir::bench::run(weir::bench::parse(arguments));
}
