// expert_cache_bench: what the bookkeeping of expert streaming costs, beside goal G3 (a hit's
// lookup and pin in 100 ns, a victim in 10 us at 20,000 slots).
//
//   expert_cache_bench
//
// Time is the thread's own processor time, so that other processes on the core do not count.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "base/check.h"
#include "measure/routing_model.h"
#include "ssd/expert_cache.h"
#include "ssd/prefetcher.h"
#include "thread_bench.h"

namespace weir::ssd {
namespace {

// The median of five runs of `run`, which returns how many operations it made, in ns each.
template <class F>
double nanoseconds(F&& run) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const double begin = thread_seconds();
    const int64_t operations = run();
    times.push_back(1e9 * (thread_seconds() - begin) / static_cast<double>(operations));
  }
  std::ranges::sort(times);
  return times[2];
}

// 20,480 of 24,576 experts in memory: 48 layers of 512, every slot in use.
constexpr int32_t kLayers = 48, kExperts = 512, kSlots = 20480;

void bench_cache() {
  ExpertCache cache(kLayers, kExperts, std::vector<int32_t>(kLayers, 0),
                    std::vector<int32_t>{kSlots});
  cache.set_usable(0, kSlots);
  std::mt19937 random(1);
  const auto any = [&] {
    return ExpertKey{static_cast<int32_t>(random() % kLayers),
                     static_cast<int32_t>(random() % kExperts)};
  };
  for (int32_t i = 0; i < 200000; ++i) cache.touch(any(), 1);
  std::vector<ExpertKey> residents;
  for (int32_t i = 0; i < kSlots; ++i) {
    const ExpertKey key{i % kLayers, i / kLayers};
    cache.unpin(cache.place(key, 0));
    residents.push_back(key);
  }
  std::ranges::shuffle(residents, random);
  std::printf("hit: lookup, touch, pin, unpin    %7.0f ns  goal 100\n", nanoseconds([&] {
                for (const ExpertKey key : residents) {
                  const int32_t slot = cache.slot_of(key);
                  cache.touch(key, 1);
                  cache.pin(slot);
                  cache.unpin(slot);
                }
                return static_cast<int64_t>(residents.size());
              }));
  std::printf("victim: place an absent expert    %7.0f ns  goal 10000\n", nanoseconds([&] {
                int64_t placed = 0;
                for (int32_t i = 0; i < 20000; ++i) {
                  const ExpertKey key = any();
                  if (cache.slot_of(key) >= 0) continue;
                  cache.unpin(cache.place(key, key.layer));
                  ++placed;
                }
                return placed;
              }));
  cache.check();
}

// The bookkeeping of guesses for one generated token of a model like Qwen3-30B-A3B.
void bench_prefetcher() {
  const measure::RoutingParams params;
  const measure::RoutingModel model(params, 1);
  std::vector<measure::RoutingStream> tokens;
  measure::RoutingStream stream(model, 2);
  for (int32_t i = 0; i < 32; ++i, stream.next_token()) tokens.push_back(stream);
  Prefetcher prefetcher(params.layers, params.experts, params.top_k, 1, PrefetchMode::kAuto);
  const double token = nanoseconds([&] {
    for (const measure::RoutingStream& routing : tokens) {
      prefetcher.begin_step();
      for (int32_t layer = 0; layer < params.layers; ++layer) {
        prefetcher.routed(layer, 0, routing.routed(layer));
        if (layer + 1 < params.layers)
          prefetcher.looked_ahead(layer + 1, 0, routing.lookahead(layer + 1));
        Prefetcher::Guess guess;
        prefetcher.next([](ExpertKey key) { return key.expert % 8 == 0; }, guess);
      }
    }
    return static_cast<int64_t>(tokens.size());
  });
  std::printf("prefetcher: a token of %d layers   %7.0f ns  %.2f %% of 30 ms\n", params.layers,
              token, token / 30e6 * 100);
}

}  // namespace
}  // namespace weir::ssd

int main() {
  weir::ssd::bench_cache();
  weir::ssd::bench_prefetcher();
}
