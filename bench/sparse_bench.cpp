// sparse_bench: what attention to chosen tokens costs a token (DeepSeek-V3.2's shape: 64 heads of
// 128 choose 2,048 latents of 576 numbers, to which 128 heads attend), by the tokens that it sees,
// on one thread: scores beside the FMA peak, the choice of the best, attention to them beside that
// to as many latents in order, and the sum beside that at the first context. Rows of other
// sequences come between, so that keys and latents come from memory.
//
//   sparse_bench [--isa NAME]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "kernels/ops.h"
#include "model/layers/best_positions.h"
#include "thread_bench.h"

namespace weir::kernels {
namespace {

constexpr int32_t kIndexHeads = 64, kIndexDim = 128, kTopK = 2048;
constexpr int32_t kHeads = 128, kLatentDim = 576, kValueDim = 512;
constexpr int64_t kMemoryBytes = int64_t{192} << 20;  // More than the caches hold.
constexpr int64_t kPageBytes = int64_t{kIndexDim + kLatentDim} * kPageTokens * 2;

// Pages as layers/latent_indexer.h fills them: keys [128][32], then latents [32][576], f16.
struct Bed {
  explicit Bed(int32_t context)
      : tokens(context),
        sequences(static_cast<int32_t>(
            std::max<int64_t>(1, kMemoryBytes / (kPageBytes * context / kPageTokens)))),
        memory(buffer(kPageBytes * sequences * context / kPageTokens)),
        scratch(buffer(kScratchBytes)) {
    std::normal_distribution<float> value(0, 1);
    std::vector<uint16_t> noise(65537);
    for (uint16_t& x : noise) x = float_to_half(value(random));
    auto* halves = reinterpret_cast<uint16_t*>(memory.data());
    const int64_t count = kPageBytes / 2 * sequences * (tokens / kPageTokens);
    for (int64_t i = 0; i < count; ++i) halves[i] = noise[static_cast<size_t>(i % 65537)];
    pages.resize(static_cast<size_t>(sequences * (tokens / kPageTokens)));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    const auto draw = [&](std::vector<float>& x, int32_t n) {
      x.resize(static_cast<size_t>(n));
      for (float& v : x) v = value(random);
    };
    draw(index_q, kIndexHeads * kIndexDim);
    draw(weights, kIndexHeads);
    draw(q, kHeads * kLatentDim);
    out.resize(static_cast<size_t>(kHeads * kValueDim));
    scores.resize(static_cast<size_t>(tokens));
    best.resize(2 * kTopK);
    chosen.resize(kTopK);
    latents.resize(kTopK);
  }

  const int32_t* pages_of(int32_t sequence) const {
    return pages.data() + static_cast<size_t>(sequence) * static_cast<size_t>(tokens / kPageTokens);
  }
  void score(const Ops& ops, int32_t sequence) {
    ops.index_scores({.q = index_q.data(),
                      .weights = weights.data(),
                      .heads = kIndexHeads,
                      .dim = kIndexDim,
                      .keys = reinterpret_cast<const uint8_t*>(memory.data()),
                      .page_bytes = kPageBytes,
                      .pages = pages_of(sequence),
                      .end = tokens,
                      .scores = scores.data(),
                      .scratch = scratch.data()});
  }
  void choose() {
    model::BestPositions kept(best.data(), kTopK);
    for (int32_t i = 0; i < tokens; ++i) kept.offer({scores[static_cast<size_t>(i)], i});
    const int32_t count = kept.finish();
    std::transform(best.begin(), best.begin() + count, chosen.begin(),
                   [](const auto& found) { return found.position; });
    std::sort(chosen.begin(), chosen.begin() + count);
  }
  // To what the last scores chose, in this sequence's pages.
  void attend(const Ops& ops, int32_t sequence) {
    const auto* base = reinterpret_cast<const uint8_t*>(memory.data());
    for (size_t i = 0; i < kTopK; ++i)
      latents[i] = base + pages_of(sequence)[chosen[i] / kPageTokens] * kPageBytes +
                   (kIndexDim * kPageTokens + chosen[i] % kPageTokens * kLatentDim) * 2;
    const KvPages kv = {
        .kv_heads = 1, .k_dim = kLatentDim, .v_dim = kValueDim, .values_in_keys = true};
    ops.attend(kv, {.q = q.data(),
                    .out = out.data(),
                    .rows = 1,
                    .first_position = kTopK - 1,
                    .keys = latents.data(),
                    .group = kHeads,
                    .scale = 1 / std::sqrt(192.0f),
                    .scratch = scratch.data()});
  }

  int32_t tokens, sequences;
  HugeBuffer memory, scratch;
  std::mt19937 random{1};
  std::vector<int32_t> pages, chosen;
  std::vector<float> index_q, weights, q, out, scores;
  std::vector<model::ScoredPosition> best;
  std::vector<const void*> latents;
};

// Milliseconds a token.
struct Costs {
  double score = 0, choose = 0, attend = 0, attend_in_order = 0;
  double sum() const { return score + choose + attend; }
};

Costs measure(const Ops& ops, int32_t tokens) {
  Bed bed(tokens);
  const auto each = [&](auto&& work) {
    const double seconds = best_seconds([&] {
      for (int32_t s = 0; s < bed.sequences; ++s) work(s);
    });
    return 1e3 * seconds / bed.sequences;
  };
  Costs costs;
  costs.score = each([&](int32_t s) { bed.score(ops, s); });
  costs.choose = each([&](int32_t) { bed.choose(); });
  costs.attend = each([&](int32_t s) { bed.attend(ops, s); });
  std::iota(bed.chosen.begin(), bed.chosen.end(), 0);
  costs.attend_in_order = each([&](int32_t s) { bed.attend(ops, s); });
  return costs;
}

void run(const Ops& ops, const MachineLimits& limits) {
  double first = 0;
  for (const int32_t tokens : {4096, 8192, 16384, 32768, 65536}) {
    const Costs c = measure(ops, tokens);
    if (first == 0) first = c.sum();
    const double tflops = 2e-9 * kIndexHeads * kIndexDim * tokens / c.score;
    const double attend = 2e-9 * kHeads * (kLatentDim + kValueDim) * kTopK;
    std::printf(
        "context %5d: scores %6.2f ms (%3.0f %% of FMA peak), choice %5.2f ms, attention %5.2f ms "
        "(%3.0f %% of FMA peak; in order %5.2f ms), sum %6.2f ms, x%.2f\n",
        tokens, c.score, 100 * tflops / limits.f32_tflops, c.choose, c.attend,
        100 * attend / c.attend / limits.f32_tflops, c.attend_in_order, c.sum(), c.sum() / first);
  }
}

}  // namespace
}  // namespace weir::kernels

int main(int argc, char** argv) {
  return weir::kernels::run_for_isa(argc, argv, weir::kernels::run);
}
