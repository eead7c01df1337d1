// encoder_bench: a picture through a tower of SigLIP's shape (400 million weights, drawn, in bf16),
// as Gemma 3 has it: seconds for each, and what share of the peak that is; as one unit, and in turns
// as the engine has them while nothing else runs, and beside steps, with the longest of these.
// Products are timed by themselves too.
//
//   encoder_bench [PIXELS A SIDE (896)] [exact]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "base/huge_pages.h"
#include "drawn_tensors.h"
#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "kernels/span_ops.h"
#include "sched/encode_pace.h"

namespace weir::encoder {
namespace {

constexpr int kWidth = 1152, kWide = 4304, kLayers = 27, kPatch = 14, kText = 2560;

std::string tower(int side) {
  bench::DrawnTensors t;
  const std::string root = "vision_tower.vision_model.";
  const int64_t patches = int64_t{side} * side;
  t.draw(root + "embeddings.patch_embedding.weight", {kWidth, 3, kPatch, kPatch});
  t.draw(root + "embeddings.patch_embedding.bias", {kWidth});
  t.draw(root + "embeddings.position_embedding.weight", {patches, kWidth});
  const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
    t.draw(name + ".weight", {n, k});
    t.draw(name + ".bias", {n});
  };
  const auto norm = [&](const std::string& name) {
    t.draw(name + ".weight", {kWidth}, 1);
    t.draw(name + ".bias", {kWidth});
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string in = concat({root, "encoder.layers.", std::to_string(layer), "."});
    norm(in + "layer_norm1");
    norm(in + "layer_norm2");
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"})
      linear(concat({in, "self_attn.", part}), kWidth, kWidth);
    linear(in + "mlp.fc1", kWide, kWidth);
    linear(in + "mlp.fc2", kWidth, kWide);
  }
  norm(root + "post_layernorm");
  t.draw("multi_modal_projector.mm_input_projection_weight", {kWidth, kText});
  t.draw("multi_modal_projector.mm_soft_emb_norm.weight", {kWidth});
  return t.file();
}

std::string config(int pixels) {
  return concat({R"({"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3",)",
                 R"("mm_tokens_per_image":256,"text_config":{"model_type":"gemma3_text",)",
                 R"("hidden_size":2560,"num_hidden_layers":1,"sliding_window":1024},)",
                 R"("vision_config":{"hidden_size":1152,"intermediate_size":4304,)",
                 R"("num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,)",
                 R"("model_type":"siglip_vision_model","image_size":)", std::to_string(pixels),
                 "}}"});
}

// Of all threads together, so that other processes do not count.
double processor_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Multiply-adds of all products of the blocks, times two.
double product_operations(double rows) {
  return rows * kLayers * 2.0 * (4.0 * kWidth * kWidth + 2.0 * kWidth * kWide);
}

// Two operations for a query, key and number of both products.
double attention_operations(double rows) { return rows * rows * kLayers * 4.0 * kWidth; }

HugeBuffer memory(int64_t bytes, int filled_with = 0x3c) {
  auto taken = HugeBuffer::allocate(static_cast<size_t>(bytes));
  CHECK(taken.has_value());
  std::memset(taken->data(), filled_with, taken->bytes());
  return *std::move(taken);
}

// The best of some runs, in operations a second.
template <class Run>
double best_rate(double operations, Run&& run) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = processor_seconds();
    run();
    best = std::min(best, processor_seconds() - begin);
  }
  return operations / best;
}

constexpr int32_t kRows = 256;  // As a claim of the encoder has them.

// One of the tower's products on one thread: by pairs, or by tiles.
double product_rate(const kernels::Ops& ops, const kernels::PairOps& pairs, int32_t n, int32_t k) {
  const int64_t stride = kernels::pair_stride(k) + kernels::kBf16Step;
  const HugeBuffer weights = memory(int64_t{n} * k * 2), scratch = memory(kernels::kScratchBytes);
  const HugeBuffer rows = memory(kRows * stride * 2), out = memory(int64_t{kRows} * n * 4);
  const kernels::FloatMatrix w = {
      .n = n, .k = k, .type = kernels::FloatType::kBF16, .rows = weights.data()};
  auto* const x = reinterpret_cast<uint16_t*>(rows.data());
  const kernels::GemmRange range = {
      .rows = kRows, .end = n, .y = reinterpret_cast<float*>(out.data()), .y_stride = n};
  return best_rate(2.0 * kRows * n * k, [&] {
    if (pairs.fast)
      pairs.gemm(w, {.k = k, .stride = stride, .x = x}, range, scratch.data());
    else
      ops.gemm_float_bf16(w, {.k = k, .stride = stride, .x = x}, range, scratch.data());
  });
}

// Attention of a claim's rows of one head to `tokens`, whose pages lie in memory that other heads
// have been through.
double attention_rate(const kernels::SpanOps& spans, int32_t tokens) {
  constexpr int32_t kHeads = 16, kDims = kWidth / kHeads;
  const int64_t head = (tokens + kernels::kPageTokens - 1) / kernels::kPageTokens *
                       kernels::span_page_numbers(kDims);
  const HugeBuffer pages = memory(kHeads * head * 2), scratch = memory(kernels::kScratchBytes);
  const HugeBuffer q = memory(int64_t{kRows} * kWidth * 4), out = memory(int64_t{kRows} * kWidth * 4);
  int32_t next = 0;
  return best_rate(4.0 * kRows * tokens * kDims, [&] {
    spans.attend({.q = reinterpret_cast<const float*>(q.data()),
                  .q_stride = kWidth,
                  .out = reinterpret_cast<float*>(out.data()),
                  .out_stride = kWidth,
                  .rows = kRows,
                  .dims = kDims,
                  .pages = reinterpret_cast<const uint16_t*>(pages.data()) + next++ * head,
                  .end = tokens,
                  .scale = 0.1f,
                  .scratch = scratch.data()});
  });
}

// As sched::Pictures has it; sorted, how long each turn took.
std::vector<double> run_turns(Encoder& encoder, ThreadTeam& team, double given) {
  std::vector<double> lengths;
  sched::EncodePace pace;
  for (bool done = false; !done;) {
    double taken = 0;
    int64_t work = given > 0 ? pace.next_unit(given, given) : Encoder::kAllWork;
    while (work > 0 && !done) {
      const double begin = now();
      const int64_t before = encoder.work_done();
      done = encoder.advance(team, work);
      const double seconds = now() - begin;
      pace.learn(encoder.work_done() - before, seconds);
      taken += seconds;
      work = pace.next_unit(given, given - taken);
    }
    lengths.push_back(taken);
  }
  std::ranges::sort(lengths);
  return lengths;
}

int run(int pixels, bool exact) {
  const kernels::Isa isa = kernels::detect_isa();
  const int threads = ThreadTeam::usable_cores();
  const auto limits = kernels::measure_limits(isa, threads);
  CHECK(limits.has_value());
  const double peak =
      1e12 * (exact || limits->bf16_tflops == 0 ? limits->f32_tflops : limits->bf16_tflops);
  const std::string settings = config(pixels), file = tower(pixels / kPatch);
  const auto card = card::ModelCard::open(
      card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(settings))},
                                       {"model.safetensors", std::as_bytes(std::span(file))}}));
  CHECK(card.has_value());
  ThreadTeam team(threads);
  const auto encoder =
      Encoder::load(*card,
                    {.compute = exact ? model::Compute::kExact : model::Compute::kFast,
                     .view_pixels_max = int64_t{pixels} * pixels},
                    kernels::ops_for(isa), team);
  if (!encoder) {
    std::fprintf(stderr, "%s\n", encoder.error().message.c_str());
    return 1;
  }
  media::PixelValues values = {.views = {{pixels, pixels}}};
  values.numbers.resize(static_cast<size_t>(pixels) * static_cast<size_t>(pixels) * 3, 0.25f);
  std::vector<float> features(
      static_cast<size_t>((*encoder)->feature_rows(values.views) * (*encoder)->width()));
  std::printf("%d threads, peak %.2f TFLOP/s of %s; scratch %.0f MB\n", threads, peak / 1e12,
              exact ? "float32" : "bf16", static_cast<double>((*encoder)->memory().scratch) / 1e6);
  const double rows = static_cast<double>(pixels / kPatch) * (pixels / kPatch);
  const kernels::PairOps& pairs = kernels::pair_ops_for(isa);
  if (!exact && (pairs.fast || kernels::ops_for(isa).prompts_in_bf16))
    for (const auto& [n, k] : {std::pair{kWidth, kWidth}, {kWide, kWidth}, {kWidth, kWide}}) {
      const double rate = product_rate(kernels::ops_for(isa), pairs, n, k);
      std::printf("product %d x %d, %d rows, one thread: %.0f GFLOP/s, %.0f %% of the peak\n", n,
                  k, kRows, rate / 1e9, 100 * rate * threads / peak);
    }
  if (const kernels::SpanOps& spans = kernels::span_ops_for(isa); !exact && spans.fast) {
    const double rate = attention_rate(spans, static_cast<int32_t>(rows));
    std::printf("attention, %d rows of a head of %d, one thread: %.0f GFLOP/s, %.0f %% of the peak\n",
                kRows, kWidth / 16, rate / 1e9, 100 * rate * threads / peak);
  }
  const double all = product_operations(rows) + attention_operations(rows);
  struct Turns {
    const char* name;
    double seconds;  // Of each; 0: all is one.
  };
  for (const Turns& turns : {Turns{"one unit", 0}, Turns{"one unit", 0},
                             Turns{"alone", sched::EncodePace::seconds_alone(0)},
                             Turns{"beside steps of 20 ms", 0.02},
                             Turns{"beside steps of 8 ms", 0.008}}) {
    const Picture picture = {&values, features};
    CHECK((*encoder)->begin({&picture, 1}).has_value());
    const double begin = now(), spent = processor_seconds();
    const std::vector<double> lengths = run_turns(**encoder, team, turns.seconds);
    const double seconds = now() - begin, busy = (processor_seconds() - spent) / threads;
    std::printf(
        "%d x %d, %s: %.2f s, of each thread's processor %.2f s; %.2f TFLOP, %.0f %% of the peak; "
        "%zu turns, median %.1f, p99 %.1f, longest %.1f ms\n",
        pixels, pixels, turns.name, seconds, busy, all / 1e12, 100 * all / busy / peak,
        lengths.size(), 1e3 * lengths[lengths.size() / 2], 1e3 * lengths[lengths.size() * 99 / 100],
        1e3 * lengths.back());
  }
  return 0;
}

}  // namespace
}  // namespace weir::encoder

int main(int argc, char** argv) {
  const int pixels = argc > 1 ? std::atoi(argv[1]) : 896;
  if (pixels < 224 || pixels % weir::encoder::kPatch != 0) {
    std::fprintf(stderr, "encoder_bench [PIXELS A SIDE, a multiple of 14 from 224] [exact]\n");
    return 2;
  }
  return weir::encoder::run(pixels, argc > 2 && std::strcmp(argv[2], "exact") == 0);
}
