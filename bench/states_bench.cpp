// states_bench: checks the gated delta rule, the decaying state (Mamba 2, lightning attention)
// and the selective scan (Mamba 1) of an ISA against the scalar reference, then times them on one
// thread: along a prompt, where one head's state stays in the cache, as arithmetic (3 dk dv
// multiply-adds a token and head of the delta rule, 2 of the decaying state) beside the FMA peak of
// the same run, or as exponentials; and as generated tokens take it, one token of each of many
// states, as the rate at which states are read and written beside a plain loop that reads and
// writes the same bytes in place.
//
//   states_bench [--isa NAME]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "kernels/ops.h"
#include "thread_bench.h"

namespace weir::kernels {
namespace {

// All states of a run of generated tokens: more than the caches hold.
constexpr int64_t kStatesBytes = int64_t{192} << 20;
constexpr int32_t kPromptTokens = 512;
constexpr int32_t kRunTokens = 64;  // As layers/gated_delta takes them.

// Tokens of one head: keys of length one, values, and states to go through them.
struct Bed {
  Bed(int32_t key_dim, int32_t value_dim, int64_t state_count)
      : dk(key_dim),
        dv(value_dim),
        states(state_count),
        memory(buffer(states * state_floats() * 4)) {
    std::mt19937 random(1);
    std::normal_distribution<float> value(0, 1);
    tokens.resize(static_cast<size_t>(kPromptTokens) * static_cast<size_t>(2 * dk + dv));
    for (float& x : tokens) x = value(random) / std::sqrt(static_cast<float>(dk));
    out.resize(static_cast<size_t>(dv) * kPromptTokens);
    clear();
  }
  int64_t state_floats() const { return int64_t{dk} * dv; }
  std::span<float> all_states() {
    return {reinterpret_cast<float*>(memory.data()), static_cast<size_t>(states * state_floats())};
  }
  void clear() { std::ranges::fill(all_states(), 0.0f); }
  DeltaRun run(int64_t state, int64_t token, int32_t count) {
    const int64_t stride = 2 * dk + dv;
    const float* const x = tokens.data() + token % kPromptTokens * stride;
    return {.state = all_states().data() + state * state_floats(),
            .tokens = count,
            .dk = dk,
            .dv = dv,
            .q = {x, stride},
            .k = {x + dk, stride},
            .v = {x + 2 * dk, stride},
            .decay = {&kDecay, 0},
            .beta = {&kBeta, 0},
            .out = out.data(),
            .out_stride = dv};
  }

  DecayRun decay_run(int64_t state, int64_t token, int32_t count) {
    const DeltaRun same = run(state, token, count);
    return {.state = same.state,
            .tokens = count,
            .dk = dk,
            .dv = dv,
            .q = same.q,
            .k = same.k,
            .v = same.v,
            .decay = same.decay,
            .gain = same.beta,
            .out = same.out,
            .out_stride = same.out_stride};
  }

  static constexpr float kDecay = 0.97f, kBeta = 0.5f;
  int32_t dk, dv;
  int64_t states;
  HugeBuffer memory;
  std::vector<float> tokens, out;
};

// A rule: how a run of tokens goes through a state, and what is counted of it.
struct Rule {
  const char* name;
  void (*go)(const Ops& ops, Bed& bed, int64_t state, int64_t token, int32_t count);
  double multiply_adds;  // A token and element of the state.
};

constexpr Rule kDelta = {"delta",
                         [](const Ops& ops, Bed& bed, int64_t state, int64_t token, int32_t count) {
                           ops.delta_run(bed.run(state, token, count));
                         },
                         3};
constexpr Rule kDecaying = {
    "decay",
    [](const Ops& ops, Bed& bed, int64_t state, int64_t token, int32_t count) {
      ops.decay_run(bed.decay_run(state, token, count));
    },
    2};

// The rate of all states of a run of generated tokens, beside a plain loop over the same bytes,
// `floats` at a time. `step(state)`: a token of one of them.
template <class F>
void report_generated(const char* what, const Ops& ops, std::span<float> all, int64_t floats,
                      F&& step) {
  const int64_t states = std::ssize(all) / floats;
  const double seconds = best_seconds([&] {
    for (int64_t state = 0; state < states; ++state) step(state);
  });
  const double plain = best_seconds([&] {
    for (int64_t state = 0; state < states; ++state)
      ops.scale(0.999f, static_cast<int32_t>(floats), all.data() + state * floats);
  });
  const double gb = 2.0 * static_cast<double>(all.size_bytes()) / 1e9;
  std::printf("%s  %8.1f GB/s    %3.0f %% of a plain loop in place\n", what, gb / seconds,
              100 * plain / seconds);
}

// Stops the program if `ops` and scalar differ at all: the order of sums is given.
void check_against_scalar(const Rule& rule, const Ops& ops, Bed& bed) {
  std::array<std::vector<float>, 2> outs;
  for (const bool scalar : {false, true}) {
    bed.clear();
    rule.go(scalar ? ops_for(Isa::kScalar) : ops, bed, 0, 0, 20);
    outs[scalar] = bed.out;
  }
  if (outs[0] == outs[1]) return;
  std::fprintf(stderr, "%s differs from scalar\n", rule.name);
  std::exit(1);
}

void prompt(const Rule& rule, const Ops& ops, int32_t dk, int32_t dv, const MachineLimits& limits) {
  Bed bed(dk, dv, 1);
  check_against_scalar(rule, ops, bed);
  const double seconds = best_seconds([&] {
    for (int32_t token = 0; token < kPromptTokens; token += kRunTokens)
      rule.go(ops, bed, 0, token, kRunTokens);
  });
  const double operations = 2 * rule.multiply_adds * kPromptTokens * static_cast<double>(dk) * dv;
  const double tflops = operations / seconds / 1e12;
  std::printf("%s prompt    dk=%-3d dv=%-3d  %8.3f TFLOPS  %3.0f %% of FMA peak\n", rule.name, dk,
              dv, tflops, 100 * tflops / limits.f32_tflops);
}

void generated(const Rule& rule, const Ops& ops, int32_t dk, int32_t dv) {
  const int64_t states = kStatesBytes / (int64_t{dk} * dv * 4);
  Bed bed(dk, dv, states);
  std::array<char, 64> what{};
  std::snprintf(what.data(), what.size(), "%s generated dk=%-3d dv=%-3d", rule.name, dk, dv);
  report_generated(what.data(), ops, bed.all_states(), bed.state_floats(),
                   [&](int64_t state) { rule.go(ops, bed, state, state, 1); });
}

// A layer's blocks of channels as layers/mamba1 takes them, and states of many sequences.
struct ScanBed {
  static constexpr int32_t kChannels = 128;
  static constexpr int32_t kBlocks = 40;  // Of a layer, which share its rates.

  ScanBed(int32_t state_dim, int64_t state_count)
      : dim(state_dim),
        states(state_count),
        memory(buffer(states * state_floats() * 4)),
        rate_memory(buffer(kBlocks * state_floats() * 4)) {
    std::mt19937 random(1);
    std::normal_distribution<float> value(0, 1);
    std::uniform_real_distribution<float> rate(0.5f, 16);
    auto* const all_rates = reinterpret_cast<float*>(rate_memory.data());
    for (int64_t i = 0; i < kBlocks * state_floats(); ++i) all_rates[i] = -rate(random);
    rows.resize(static_cast<size_t>(kPromptTokens * stride()));
    for (float& x : rows) x = value(random);
    out.resize(static_cast<size_t>(kPromptTokens) * kChannels);
  }
  int64_t state_floats() const { return int64_t{dim} * kChannels; }
  int64_t stride() const { return 2 * kChannels + 2 * dim; }
  std::span<float> all_states() {
    return {reinterpret_cast<float*>(memory.data()), static_cast<size_t>(states * state_floats())};
  }
  SelectiveScan run(int64_t state, int64_t token, int32_t count) {
    const float* const x = rows.data() + token % kPromptTokens * stride();
    return {.state = all_states().data() + state * state_floats(),
            .rate = reinterpret_cast<const float*>(rate_memory.data()) +
                    state % kBlocks * state_floats(),
            .skip = rows.data(),
            .tokens = count,
            .channels = kChannels,
            .states = dim,
            .x = {x, stride()},
            .step = {x + kChannels, stride()},
            .b = {x + 2 * kChannels, stride()},
            .c = {x + 2 * kChannels + dim, stride()},
            .out = out.data(),
            .out_stride = kChannels};
  }

  int32_t dim;
  int64_t states;
  HugeBuffer memory, rate_memory;
  std::vector<float> rows, out;
};

// Stops the program if `ops` and scalar differ by more than their exponentials may.
void check_against_scalar(const Ops& ops, ScanBed& bed) {
  std::array<std::vector<float>, 2> outs;
  for (const bool scalar : {false, true}) {
    std::ranges::fill(bed.all_states().first(static_cast<size_t>(bed.state_floats())), 0.0f);
    (scalar ? ops_for(Isa::kScalar) : ops).selective_scan(bed.run(0, 0, 20));
    outs[scalar] = bed.out;
  }
  for (size_t i = 0; i < outs[0].size(); ++i) {
    if (std::abs(outs[0][i] - outs[1][i]) <= 1e-4f) continue;
    std::fprintf(stderr, "selective_scan differs from scalar\n");
    std::exit(1);
  }
}

void scan_prompt(const Ops& ops, int32_t dim) {
  ScanBed bed(dim, 1);
  check_against_scalar(ops, bed);
  const double seconds = best_seconds([&] {
    for (int32_t token = 0; token < kPromptTokens; token += kRunTokens)
      ops.selective_scan(bed.run(0, token, kRunTokens));
  });
  const double exponentials = static_cast<double>(kPromptTokens) * ScanBed::kChannels * dim;
  std::printf("scan prompt     states=%-3d     %8.3f G exponentials/s\n", dim,
              exponentials / seconds / 1e9);
}

void scan_generated(const Ops& ops, int32_t dim) {
  const int64_t states = kStatesBytes / (int64_t{dim} * ScanBed::kChannels * 4);
  ScanBed bed(dim, states);
  std::array<char, 64> what{};
  std::snprintf(what.data(), what.size(), "scan generated  states=%-3d    ", dim);
  report_generated(what.data(), ops, bed.all_states(), bed.state_floats(),
                   [&](int64_t state) { ops.selective_scan(bed.run(state, state, 1)); });
}

void both(const Rule& rule, const Ops& ops, int32_t dk, int32_t dv, const MachineLimits& limits) {
  prompt(rule, ops, dk, dv, limits);
  generated(rule, ops, dk, dv);
}

void run(const Ops& ops, const MachineLimits& limits) {
  for (const int32_t dims : {64, 128}) both(kDelta, ops, dims, dims, limits);
  both(kDecaying, ops, 128, 64, limits);   // Mamba 2: states of 128 numbers for heads of 64.
  both(kDecaying, ops, 128, 128, limits);  // Lightning attention.
  scan_prompt(ops, 16);
  scan_generated(ops, 16);
}

}  // namespace
}  // namespace weir::kernels

int main(int argc, char** argv) {
  return weir::kernels::run_for_isa(argc, argv, weir::kernels::run);
}
