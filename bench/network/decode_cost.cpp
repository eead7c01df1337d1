#include "decode_cost.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "program/model_choice.h"
#include "swarm.h"
#include "weir_bed.h"

namespace weir::bench {

namespace {

// Prompts are through and no sequence has ended: between these shares of all tokens.
constexpr double kWindowBegin = 0.3, kWindowEnd = 0.85;
constexpr int32_t kRowsMax = 2048;
constexpr auto kLook = std::chrono::milliseconds(2);

struct Sample {
  double wall_s = 0, machine_us = 0, process_us = 0, client_us = 0;
  int64_t tokens = 0;
  CpuTime loop;
};

struct Bench {
  ModelChoice choice;
  const kernels::Ops& ops;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  int32_t streams = 0, tokens = 0;
  int32_t prompt_tokens = 0;  // As HTTP makes it.
};

int64_t generated(const sched::EngineStats& stats) {
  return static_cast<int64_t>(stats.generated_tokens.value());
}

// Waits until `share` of all tokens are there.
template <class Take>
Sample sample_at(double share, const Bench& bench, const sched::EngineStats& stats, Take take) {
  const double all = static_cast<double>(bench.streams) * bench.tokens;
  while (static_cast<double>(generated(stats)) < share * all) std::this_thread::sleep_for(kLook);
  Sample sample;
  sample.wall_s = now_s();
  sample.machine_us = machine_busy_us();
  sample.process_us = process_cpu().total_us();
  sample.tokens = generated(stats);
  take(sample);
  return sample;
}

DecodeRate rate_between(const Sample& begin, const Sample& end) {
  const double wall_us = 1e6 * (end.wall_s - begin.wall_s);
  const double clients_us = end.client_us - begin.client_us;
  const double others_us = std::max(
      0.0, end.machine_us - begin.machine_us - clients_us - (end.process_us - begin.process_us));
  const double tokens = static_cast<double>(end.tokens - begin.tokens);
  return {.wall = 1e6 * tokens / wall_us,
          .cpu_us = (end.process_us - begin.process_us) / tokens,
          .others = others_us / wall_us / cores()};
}

sched::RunnerOptions runner_options(const Bench& bench) {
  sched::RunnerOptions runner;
  runner.engine.step_tokens_max = kRowsMax;
  runner.engine.running_max = bench.streams;
  runner.engine.queue_max = bench.streams;
  runner.engine.context_max = bench.model->context_max();
  runner.engine.prefix_cache = false;
  runner.kv_format = bench.choice.kv_format;
  runner.members = bench.choice.threads;
  runner.page_count = (bench.tokens / kernels::kPageTokens + 4) * (bench.streams + 1);
  return runner;
}

Result<void> measure_served(Bench& bench, DecodeCost& cost) {
  WeirBed bed(*bench.model, bench.ops, runner_options(bench), *bench.tokenizer);
  const std::string body =
      R"({"messages":[{"role":"user","content":"Tell me a short story."}],"stream":true,)"
      R"("temperature":0,"ignore_eos":true,"max_tokens":)" +
      std::to_string(bench.tokens) + "}";
  Swarm swarm = Swarm::streams(bed.port(), bench.streams, "/v1/chat/completions", body);
  const auto take = [&](Sample& sample) {
    sample.client_us = swarm.cpu_us();
    sample.loop = bed.cpu();
  };
  const Sample begin = sample_at(kWindowBegin, bench, bed.engine_stats(), take);
  const Sample end = sample_at(kWindowEnd, bench, bed.engine_stats(), take);
  WEIR_ASSIGN(const SwarmResult result, swarm.wait());
  if (result.streams != bench.streams) return fail(ErrorCode::kIo, "not every stream has ended");
  bench.prompt_tokens =
      static_cast<int32_t>(bed.engine_stats().prompt_tokens.value()) / bench.streams;
  const double events = static_cast<double>(end.tokens - begin.tokens);
  cost.served.push_back(rate_between(begin, end));
  cost.loop.push_back((end.loop - begin.loop) / events);
  cost.client_us = (end.client_us - begin.client_us) / events;
  cost.events_per_write.push_back(static_cast<double>(result.events) /
                                  static_cast<double>(result.chunks));
  cost.finish_ratio.push_back(result.slowest_s / result.fastest_s);
  return {};
}

void measure_alone(const Bench& bench, DecodeCost& cost) {
  sched::EngineRunner runner(*bench.model, bench.ops, runner_options(bench));
  std::vector<int32_t> prompt = bench.tokenizer->encode("user: Tell me a short story.");
  prompt.resize(static_cast<size_t>(bench.prompt_tokens), prompt.back());
  std::vector<std::unique_ptr<sched::Request>> requests;
  sample::SamplingParams greedy;
  greedy.temperature = 0;
  for (int32_t i = 0; i < bench.streams; ++i) {
    requests.push_back(
        std::make_unique<sched::Request>(prompt, greedy, bench.tokens, /*logprobs=*/false));
    CHECK(runner.handle().submit(requests.back().get()).has_value());
  }
  const auto nothing_more = [](Sample&) {};
  const Sample begin = sample_at(kWindowBegin, bench, runner.handle().stats(), nothing_more);
  const Sample end = sample_at(kWindowEnd, bench, runner.handle().stats(), nothing_more);
  cost.alone.push_back(rate_between(begin, end));
  while (runner.handle().open() > 0) std::this_thread::sleep_for(kLook);
}

}  // namespace

Result<DecodeCost> measure_decode_cost(const std::string& folder, int32_t streams, int32_t tokens,
                                       int32_t rounds) {
  Options options;
  options.model = folder;
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  model::ModelOptions model_options;
  model_options.compute = choice.compute;
  model_options.rows_max = kRowsMax;
  const kernels::Ops& ops = kernels::ops_for(choice.isa);
  ThreadTeam team(choice.threads);
  WEIR_ASSIGN(std::unique_ptr<model::Model> model,
              model::Model::load(choice.model_card, model_options, ops, team));
  WEIR_ASSIGN(const card::TokenizerFile file, choice.model_card.open_tokenizer());
  WEIR_ASSIGN(std::unique_ptr<text::Tokenizer> tokenizer,
              text::Tokenizer::load_file(file.name, file.view.text(), file.config));
  Bench bench{std::move(choice), ops, std::move(model), std::move(tokenizer), streams, tokens};
  DecodeCost cost;
  cost.model = bench.choice.model_card.files.name();
  cost.threads = bench.choice.threads;
  for (int32_t round = 0; round < rounds; ++round) {
    WEIR_TRY(measure_served(bench, cost));
    measure_alone(bench, cost);
  }
  return cost;
}

}  // namespace weir::bench
