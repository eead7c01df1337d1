// adapter_bench: what adapters (LoRA) cost a decode step: the same batch without, with one adapter
// for all sequences, and with a different one for each, in turns, of random numbers for every linear
// layer of the model.
//
//   adapter_bench MODEL [--batch 8] [--rank 16] [--steps 20] [--rounds 7] [--prompt 0]
//
// Times are by the clock: the median of the rounds, and the least and the most; of a step's layers,
// and of the whole of it with the head, sampling left out. With --prompt also of the layers of a
// prompt of so many tokens.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/thread_team.h"
#include "card/adapter_files.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "kv/kv_cache.h"
#include "model/adapter.h"
#include "model/batch_builder.h"
#include "model/decoder.h"
#include "number_flags.h"

namespace weir::model {
namespace {

using card::AdapterFiles;
using card::read_adapter;

using std::chrono::steady_clock;

struct Settings {
  std::string model;
  int32_t batch = 8, rank = 16, steps = 20, rounds = 7, prompt = 0;
};

bool read_settings(int argc, char** argv, Settings& s) {
  if (argc < 2) return false;
  s.model = argv[1];
  const std::span<char* const> numbers(argv + 2, argv + argc);
  if (!bench::read_numbers(numbers, {{"--batch", &s.batch},
                                     {"--rank", &s.rank},
                                     {"--steps", &s.steps},
                                     {"--rounds", &s.rounds},
                                     {"--prompt", &s.prompt}}))
    return false;
  return s.batch >= 1 && s.rank >= 1 && s.steps >= 1 && s.rounds >= 1;
}

// Of every matrix within a layer that is not one of several stacked ones.
std::string adapter_bytes(const Decoder& model, int32_t rank, uint32_t seed) {
  AdapterFiles files(seed);
  for (const BoundModule& module : model.modules()) {
    if (module.rows.size() != 1 || module.path.find("layers.") == std::string::npos) continue;
    files.low_rank(module.path, module.rows[0], module.k, rank, 0.01f);
  }
  return files.bytes();
}

struct Timing {
  std::vector<double> seconds;

  double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  double least() const { return *std::ranges::min_element(seconds); }
  double most() const { return *std::ranges::max_element(seconds); }
};

// Batches as the engine would make them, without sampling; without the head, too, where nothing is
// wanted of their rows.
class Bench final : public RowSink {
 public:
  // Which of the adapters sequence s has: none, the first, or its own.
  enum class Use { kNone, kOne, kEach };

  static Result<std::unique_ptr<Bench>> open(const Settings& settings, Decoder& model,
                                             ThreadTeam& team,
                                             std::vector<std::shared_ptr<const Adapter>> adapters) {
    std::unique_ptr<Bench> bench(new Bench(settings, model, team));
    bench->adapters_ = std::move(adapters);
    WEIR_ASSIGN(bench->cache_,
                kv::KvCache::create(model.memory_needs(), kernels::FloatType::kF16,
                                    bench->pages_each_ * settings.batch,
                                    {.running = settings.batch}));
    return bench;
  }

  // A step, of the mean of some.
  double decode(Use use, bool head) {
    const auto begin = steady_clock::now();
    for (int32_t i = 0; i < settings_.steps; ++i) step(use, i + 1, head);
    return seconds_since(begin) / settings_.steps;
  }
  double prompt(Use use) {
    builder_.clear();
    add_slice(0, 0, settings_.prompt, use);
    for (int32_t i = 0; i < settings_.prompt; ++i) builder_.add_token(i % 1000);
    const auto begin = steady_clock::now();
    run();
    return seconds_since(begin);
  }
  void on_rows(int32_t, int32_t, Rows, int) override {}

 private:
  Bench(const Settings& settings, Decoder& model, ThreadTeam& team)
      : settings_(settings), model_(model), team_(team) {
    const int32_t tokens = std::max(settings.prompt, settings.steps + 1);
    pages_each_ = (tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
    for (int32_t page = 0; page < pages_each_ * settings.batch; ++page) pages_.push_back(page);
  }
  static double seconds_since(steady_clock::time_point begin) {
    return std::chrono::duration<double>(steady_clock::now() - begin).count();
  }
  const Adapter* adapter(Use use, int32_t s) const {
    if (use == Use::kNone) return nullptr;
    return adapters_[use == Use::kOne ? 0 : static_cast<size_t>(s)].get();
  }
  void add_slice(int32_t s, int32_t position, int32_t prompt_length, Use use) {
    builder_.add_slice({.first_position = position,
                        .prompt_length = prompt_length,
                        .memory = {.tables = pages_.data() + s * pages_each_, .state = s},
                        .adapter = adapter(use, s),
                        .sequence = s});
  }
  void step(Use use, int32_t position, bool head) {
    builder_.clear();
    for (int32_t s = 0; s < settings_.batch; ++s) {
      add_slice(s, position, position, use);
      builder_.add_token(5 + s);
      if (head) builder_.want_next();
    }
    run();
  }
  void run() {
    const Batch batch = builder_.batch();
    team_.run([&](int member) { model_.forward(batch, *cache_, *this, team_, member); });
  }

  const Settings& settings_;
  Decoder& model_;
  ThreadTeam& team_;
  std::vector<std::shared_ptr<const Adapter>> adapters_;
  std::optional<kv::KvCache> cache_;
  int32_t pages_each_ = 0;
  std::vector<int32_t> pages_;
  BatchBuilder builder_;
};

template <class F>
void measure(const Settings& settings, std::string_view what, const F& run) {
  using Use = Bench::Use;
  static constexpr std::array kUses = {Use::kNone, Use::kOne, Use::kEach};
  static constexpr std::array kNames = {"without", "one adapter", "one each"};
  std::array<Timing, 3> timings;
  for (const Use use : kUses) run(use);
  for (int32_t round = 0; round < settings.rounds; ++round)
    for (size_t i = 0; i < kUses.size(); ++i) timings[i].seconds.push_back(run(kUses[i]));
  for (size_t i = 0; i < kUses.size(); ++i)
    std::printf("%-8s %-12s %8.3f ms  (%.3f to %.3f)  %+6.1f %%\n", std::string(what).c_str(),
                kNames[i], 1e3 * timings[i].median(), 1e3 * timings[i].least(),
                1e3 * timings[i].most(), 100 * (timings[i].median() / timings[0].median() - 1));
}

Result<void> bench(const Settings& settings) {
  WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(settings.model));
  WEIR_ASSIGN(const kernels::Isa isa, kernels::choose_isa({}));
  const kernels::Ops& ops = kernels::ops_for(isa);
  ThreadTeam team(ThreadTeam::usable_cores());
  const ModelOptions options = {.rows_max = std::max(512, settings.prompt),
                                .context_max = 4096,
                                .adapter_rank = settings.rank};
  WEIR_ASSIGN(const std::unique_ptr<Decoder> model,
              Decoder::bind(card, options, ops, team.members()));
  model->pack(team, {});
  std::vector<std::shared_ptr<const Adapter>> adapters;
  for (int32_t i = 0; i < settings.batch; ++i) {
    const std::string bytes = adapter_bytes(*model, settings.rank, static_cast<uint32_t>(i) + 1);
    const std::string config = AdapterFiles::config(settings.rank, settings.rank);
    WEIR_ASSIGN(const card::AdapterCard adapter, read_adapter(config, bytes));
    WEIR_ASSIGN(auto bound, model->bind_adapter(adapter, int64_t{8} << 30));
    adapters.push_back(std::move(bound));
  }
  std::printf("%s, batch %d, rank %d, %.1f MB an adapter beside %.1f MB of weights, %s, %d threads\n",
              settings.model.c_str(), settings.batch, settings.rank,
              static_cast<double>(adapters[0]->bytes()) / 1e6,
              static_cast<double>(model->token_work().weight_bytes) / 1e6,
              std::string(kernels::isa_name(isa)).c_str(), team.members());
  WEIR_ASSIGN(const std::unique_ptr<Bench> run,
              Bench::open(settings, *model, team, std::move(adapters)));
  measure(settings, "layers", [&](Bench::Use use) { return run->decode(use, false); });
  measure(settings, "step", [&](Bench::Use use) { return run->decode(use, true); });
  if (settings.prompt > 0)
    measure(settings, "prompt", [&](Bench::Use use) { return run->prompt(use); });
  return {};
}

}  // namespace
}  // namespace weir::model

int main(int argc, char** argv) {
  weir::model::Settings settings;
  if (!weir::model::read_settings(argc, argv, settings)) {
    std::fprintf(stderr,
                 "usage: %s MODEL [--batch N] [--rank N] [--steps N] [--rounds N] [--prompt N]\n",
                 argv[0]);
    return 2;
  }
  const auto done = weir::model::bench(settings);
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
