// transcribe_bench: windows of 30 s through an engine with a model of whisper-small's shape (244
// million weights, drawn, in bf16): how many seconds of sound a second are written down for 1, 8 and 32
// clients, each of which asks for the next window when it has one, beside what the machine's limits
// would give.
//
//   transcribe_bench [--tokens 100] [--windows 2] [--clients 0] [exact]
//
// Every window is another sound, so that each is encoded. Its answer has as many tokens as are asked
// for: speech of 30 s has about 100. The first client's answers are compared with those of the run
// with one client before a time counts. Without --clients all three are measured. The limit counts
// products and attention of the encoder at the peak of bf16, and what each step reads at the best rate
// of a plain read: the decoder's weights once, and keys and values of each sequence's sound.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "card/model_card.h"
#include "drawn_tensors.h"
#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "number_flags.h"
#include "sched/engine_runner.h"

namespace weir::sched {
namespace {

constexpr int64_t kWidth = 768, kWide = 3072, kLayers = 12, kBands = 80, kVocab = 51865;
constexpr int64_t kRows = 1500, kFrames = 2 * kRows, kPositions = 448;
constexpr double kWindowSeconds = 30;

struct Settings {
  int32_t tokens = 100, windows = 2, clients = 0;
  bool exact = false;
};

bool read_settings(int argc, char** argv, Settings& s) {
  std::span<char* const> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && std::string_view(arguments.back()) == "exact") {
    s.exact = true;
    arguments = arguments.first(arguments.size() - 1);
  }
  if (!bench::read_numbers(arguments, {{"--tokens", &s.tokens},
                                       {"--windows", &s.windows},
                                       {"--clients", &s.clients}}))
    return false;
  return s.tokens >= 1 && s.tokens < kPositions - 4 && s.windows >= 1 && s.clients <= 64;
}

void draw_linear(bench::DrawnTensors& t, const std::string& name, int64_t n, int64_t k,
                 bool bias = true) {
  t.draw(name + ".weight", {n, k});
  if (bias) t.draw(name + ".bias", {n});
}

void draw_norm(bench::DrawnTensors& t, const std::string& name) {
  t.draw(name + ".weight", {kWidth}, 1);
  t.draw(name + ".bias", {kWidth});
}

void draw_attention(bench::DrawnTensors& t, const std::string& name) {
  for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"})
    draw_linear(t, name + "." + part, kWidth, kWidth, std::strcmp(part, "k_proj") != 0);
}

void draw_layers(bench::DrawnTensors& t, const std::string& root, bool decoder) {
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string in = root + "layers." + std::to_string(layer) + ".";
    draw_attention(t, in + "self_attn");
    draw_norm(t, in + "self_attn_layer_norm");
    if (decoder) {
      draw_attention(t, in + "encoder_attn");
      draw_norm(t, in + "encoder_attn_layer_norm");
    }
    draw_linear(t, in + "fc1", kWide, kWidth);
    draw_linear(t, in + "fc2", kWidth, kWide);
    draw_norm(t, in + "final_layer_norm");
  }
  draw_norm(t, root + "layer_norm");
}

std::string checkpoint() {
  bench::DrawnTensors t;
  t.draw("model.encoder.conv1.weight", {kWidth, kBands, 3});
  t.draw("model.encoder.conv1.bias", {kWidth});
  t.draw("model.encoder.conv2.weight", {kWidth, kWidth, 3});
  t.draw("model.encoder.conv2.bias", {kWidth});
  t.draw("model.encoder.embed_positions.weight", {kRows, kWidth});
  draw_layers(t, "model.encoder.", /*decoder=*/false);
  t.draw("model.decoder.embed_tokens.weight", {kVocab, kWidth});
  t.draw("model.decoder.embed_positions.weight", {kPositions, kWidth});
  draw_layers(t, "model.decoder.", /*decoder=*/true);
  return t.file();
}

constexpr const char* kConfig =
    R"({"architectures":["WhisperForConditionalGeneration"],"model_type":"whisper","d_model":768,)"
    R"("encoder_layers":12,"encoder_attention_heads":12,"encoder_ffn_dim":3072,)"
    R"("decoder_layers":12,"decoder_attention_heads":12,"decoder_ffn_dim":3072,)"
    R"("num_mel_bins":80,"max_source_positions":1500,"max_target_positions":448,)"
    R"("vocab_size":51865})";

std::shared_ptr<const HeardSound> sound(int32_t number) {
  media::SoundFeatures features = {.frames = kFrames, .heard = kFrames, .numbers = {}};
  std::mt19937 random(static_cast<unsigned>(number));
  std::uniform_real_distribution<float> loudness(-1, 1);
  features.numbers.resize(static_cast<size_t>(kFrames * kBands));
  for (float& band : features.numbers) band = loudness(random);
  auto heard = std::make_shared<HeardSound>();
  heard->hash = hash_of(features);
  heard->features = std::make_shared<const media::SoundFeatures>(std::move(features));
  return heard;
}

using Answers = std::vector<int32_t>;  // Of one client, one after another.

void transcribe(EngineRunner& runner, const Settings& settings, int32_t client, Answers& answers) {
  for (int32_t window = 0; window < settings.windows; ++window) {
    sample::SamplingParams params;
    params.temperature = 0;
    Request request({50258, 50259, 50359, 50363}, params, settings.tokens, /*logprobs=*/true);
    request.heard = sound(client * 1000 + window);
    request.arrived = Clock::now();
    const Result<void> submitted = runner.handle().submit(&request);
    CHECK(submitted.has_value());
    runner.wait(request);
    CHECK(request.log.finish_reason() == FinishReason::kLength);
    for (int32_t i = 0; i < request.log.size(); ++i) answers.push_back(request.log[i].token);
  }
}

// Of a window: two operations for each multiply-add.
double encoder_operations() {
  const double products = kRows * kLayers * 2.0 * (4 * kWidth * kWidth + 2 * kWidth * kWide);
  const double attention = 4.0 * kRows * kRows * kWidth * kLayers;
  const double convolutions = 2.0 * 3 * kWidth * (kFrames * kBands + kRows * kWidth);
  const double filling = kRows * kLayers * 4.0 * kWidth * kWidth;
  return products + attention + convolutions + filling;
}

// Seconds of sound a second that the machine's limits allow.
double limit_of(const kernels::MachineLimits& machine, const Settings& settings, int32_t clients) {
  const double peak =
      1e12 * (settings.exact || machine.bf16_tflops == 0 ? machine.f32_tflops : machine.bf16_tflops);
  const double weights =
      2.0 * (kVocab * kWidth + kLayers * (8 * kWidth * kWidth + 2 * kWidth * kWide));
  const double heard = 2.0 * kLayers * kRows * kWidth * (settings.exact ? 4 : 2);
  const double step = (weights + clients * heard) / (1e9 * machine.plain_read_gb_s);
  return kWindowSeconds / (encoder_operations() / peak + settings.tokens * step / clients);
}

int run(const Settings& settings) {
  const kernels::Isa isa = kernels::detect_isa();
  const kernels::Ops& ops = kernels::ops_for(isa);
  const int threads = ThreadTeam::usable_cores();
  const auto machine = kernels::measure_limits(isa, threads);
  CHECK(machine.has_value());
  const std::string config = kConfig, file = checkpoint();
  const auto card = card::ModelCard::open(
      card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                       {"model.safetensors", std::as_bytes(std::span(file))}}));
  CHECK(card.has_value());
  const auto compute = settings.exact ? model::Compute::kExact : model::Compute::kFast;
  ThreadTeam team(threads);
  auto model = model::Model::load(*card, {.compute = compute}, ops, team);
  auto ear = encoder::Encoder::load(
      *card, {.compute = compute, .medium = encoder::Medium::kSound, .frames_max = kFrames}, ops,
      team);
  if (!model || !ear) {
    std::fprintf(stderr, "%s\n", (model ? ear.error() : model.error()).message.c_str());
    return 1;
  }
  std::printf("%d threads; %.0f GFLOP and %d tokens a window of 30 s\n", threads,
              encoder_operations() / 1e9, settings.tokens);
  Answers expected;
  for (const int32_t clients : {1, 8, 32}) {
    if (settings.clients > 0 && clients != 1 && clients != settings.clients) continue;
    RunnerOptions options;
    options.members = threads;
    options.ear = ear->get();
    options.engine.running_max = clients;
    options.engine.queue_max = clients;
    options.page_count = clients * static_cast<int32_t>(kPositions / kernels::kPageTokens);
    options.kv_format = settings.exact ? kernels::FloatType::kF32 : kernels::FloatType::kF16;
    EngineRunner runner(**model, ops, options);
    std::vector<Answers> answers(static_cast<size_t>(clients));
    const Clock::time_point begin = Clock::now();
    {
      std::vector<std::jthread> all;
      for (int32_t c = 0; c < clients; ++c)
        all.emplace_back([&, c] { transcribe(runner, settings, c, answers[static_cast<size_t>(c)]); });
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (clients == 1) expected = answers[0];
    CHECK(answers[0] == expected);
    const double rate = kWindowSeconds * settings.windows * clients / seconds;
    const double limit = limit_of(*machine, settings, clients);
    const double encoding = runner.handle().stats().audio_seconds.value();
    std::printf("%2d clients: %.2f s of sound a second, of at most %.2f (%.0f %%); encoding and "
                "filling %.0f %% of the time\n",
                clients, rate, limit, 100 * rate / limit, 100 * encoding / seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace weir::sched

int main(int argc, char** argv) {
  weir::sched::Settings settings;
  if (!weir::sched::read_settings(argc, argv, settings)) {
    std::fprintf(stderr,
                 "transcribe_bench [--tokens 100] [--windows 2] [--clients 0] [exact]\n");
    return 2;
  }
  return weir::sched::run(settings);
}
