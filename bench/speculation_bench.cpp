// speculation_bench: what drafts gain and cost in the real engine with a real model, for drafts
// that are right with a known chance: in turns without drafts, with fixed numbers of them, with as
// many as the controller takes, and with predictions of which so many tokens in a hundred are
// right.
//
//   speculation_bench MODEL [--tokens 192] [--prompt 64] [--rounds 3] [--pairs-max 40]
//                     [--batch 0] [--right 0] [--drafts 7] [--controller 1] [--predictions 1]
//
// Every answer is compared with the one without drafts before a time counts. Without --batch
// batches of 1, 4, 8 and 32 are measured; with --right drafts alone of which so many in a hundred
// are right. Times are by the clock, the median of the rounds, from when all sequences decode
// until the first one ends: drafts take sequences to their ends at different times, and a server
// gives the place of one that has ended to the next. `formula` is what a step with a fixed number
// of drafts should give:
//   (1 + a + ... + a^k) * T(B) / T(B * (k + 1)), with both times from steps that took no draft.
// The controller answers the batch many times in an engine: `new` is the first time, in which it
// has yet to learn what steps cost, `known` are those after a thousand tokens of each sequence, as
// a server is after its first minute. Each is compared with the answer before it of an engine
// without drafts: the two answer in turns. A round is a new pair of engines, which gives one `new`
// and four of `known`. A cell's goal is for the median of `known`: 98 % of none, and 95 % of the
// best fixed number at batch 1, 90 % at others. The last pair of engines goes on, until there are
// --pairs-max, while the interval of that median (95 %) is on both sides of the goal. At the end
// the goal is met, or missed, or `open`. The best fixed number is the best of medians of few
// rounds, so it is a little too good. `steps`: of `known`, those of a hundred that had drafts,
// which says what the controller did where times only say what the machine did. With 0 the
// controller, or predictions, are not measured.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "number_flags.h"
#include "sched/copy_drafts.h"
#include "sched/engine_runner.h"
#include "sched/prediction_drafts.h"

namespace weir::sched {
namespace {

struct Settings {
  std::string model;
  int32_t tokens = 192, prompt = 64, rounds = 3, pairs_max = 40, batch = 0, drafts = 7;
  int32_t right = 0;                        // Of a hundred drafts; 0: 10, 30, 50, 70 and 90.
  int32_t controller = 1, predictions = 1;  // 0: it is not measured.
};

bool read_settings(int argc, char** argv, Settings& s) {
  if (argc < 2) return false;
  s.model = argv[1];
  const std::span<char* const> numbers(argv + 2, argv + argc);
  if (!bench::read_numbers(numbers, {{"--tokens", &s.tokens},
                                     {"--prompt", &s.prompt},
                                     {"--rounds", &s.rounds},
                                     {"--pairs-max", &s.pairs_max},
                                     {"--batch", &s.batch},
                                     {"--right", &s.right},
                                     {"--drafts", &s.drafts},
                                     {"--controller", &s.controller},
                                     {"--predictions", &s.predictions}}))
    return false;
  return s.tokens >= 8 && s.prompt >= 4 && s.rounds >= 1 && s.pairs_max >= 1 && s.drafts >= 1 &&
         s.drafts <= DraftSource::kDraftsMax;
}

using Answers = std::vector<std::vector<int32_t>>;

// Drafts of which each is right with the same chance, if those before it were.
class KnownChance final : public DraftSource {
 public:
  KnownChance(const Answers& answers, int32_t vocab_size, double chance)
      : answers_(answers), vocab_size_(vocab_size), chance_(chance) {}

  DraftKind kind() const override { return DraftKind::kDraft; }
  bool computes() const override { return false; }
  int32_t begin(const Request&, int32_t) override { return kDraftsMax; }
  void draft(std::span<DraftOrder> orders) override {
    for (DraftOrder& order : orders) {
      const std::vector<int32_t>& answer = answers_[order.request->id];
      const size_t known = static_cast<size_t>(order.request->log.size()) + order.pending.size();
      for (size_t i = 0; i < order.drafts.size(); ++i) {
        const int32_t token = known + i < answer.size() ? answer[known + i] : 0;
        const bool right = std::uniform_real_distribution<double>(0, 1)(random_) < chance_;
        order.drafts[i] = {.token = right ? token : (token + 1) % vocab_size_,
                           .sureness = Draft::kClasses / 2};
      }
      order.count = static_cast<int32_t>(order.drafts.size());
    }
  }

 private:
  const Answers& answers_;
  const int32_t vocab_size_;
  const double chance_;
  std::mt19937 random_{20261125};
};

// How a run drafts.
struct Way {
  SpeculationOptions options{};
  double prediction = -1;  // Share of a prediction's tokens that are right; below 0: there is none.
};

class Bench {
 public:
  Bench(const Settings& settings, model::Model& model, const kernels::Ops& ops, int members)
      : settings_(settings), model_(model), ops_(ops), members_(members) {}

  // Tokens a second while all sequences decode, of an engine that has run nothing. Checks the
  // answers against `expected`, or returns them in it if it is empty.
  double run(int32_t batch, const Way& way, Answers& expected) {
    Engine engine(*this, batch, way);
    return engine.answer(expected);
  }

  // Answers a batch as often as it is asked.
  class Engine {
   public:
    Engine(const Bench& bench, int32_t batch, const Way& way)
        : bench_(bench),
          batch_(batch),
          way_(way),
          runner_(bench.model_, bench.ops_, bench.runner_options(batch, way)) {}
    ~Engine() { runner_.stop(); }

    double answer(Answers& expected) {
      return bench_.answer(runner_, batch_, way_, expected, !std::exchange(begun_, true));
    }
    // So far: of all steps, and of those with drafts.
    std::array<uint64_t, 2> steps() {
      const EngineStats& stats = runner_.handle().stats();
      return {stats.steps.value(), stats.draft_steps.value()};
    }

   private:
    const Bench& bench_;
    const int32_t batch_;
    const Way way_;
    EngineRunner runner_;
    bool begun_ = false;
  };

 private:
  RunnerOptions runner_options(int32_t batch, const Way& way) const {
    RunnerOptions options;
    options.members = members_;
    options.page_count = batch * ((settings_.prompt + settings_.tokens) / kv::kPageTokens + 3);
    options.kv_format = kernels::FloatType::kF16;
    options.held = true;
    options.engine.running_max = std::max(batch, 1);
    options.engine.queue_max = 2 * batch;
    options.engine.prefix_cache = false;
    options.engine.speculation = way.options;
    return options;
  }

  double answer(EngineRunner& runner, int32_t batch, const Way& way, Answers& expected,
                bool held) const {
    std::vector<std::unique_ptr<Request>> requests = make_requests(batch, way, expected);
    for (const auto& request : requests) CHECK(runner.handle().submit(request.get()).has_value());
    if (held) runner.begin();
    const auto tokens = [&] {
      int64_t sum = 0;
      for (const auto& request : requests) sum += request->log.size();
      return sum;
    };
    runner.wait_until([&] {
      return std::ranges::all_of(requests, [](auto& request) { return request->log.size() > 0; });
    });
    const Clock::time_point begin = Clock::now();
    const int64_t before = tokens();
    runner.wait_until([&] {
      return std::ranges::any_of(requests, [](auto& request) { return request->log.finished(); });
    });
    const Clock::time_point end = Clock::now();
    const int64_t given = tokens() - before;
    for (const auto& request : requests) runner.wait(*request);
    compare(requests, expected);
    return static_cast<double>(given) / std::chrono::duration<double>(end - begin).count();
  }

  std::vector<std::unique_ptr<Request>> make_requests(int32_t batch, const Way& way,
                                                      const Answers& expected) const {
    // Of their own: prompts are the same, whatever is predicted.
    std::mt19937 of_prompts(7), of_predictions(8);
    const auto below = [](std::mt19937& random, int32_t bound) {
      return static_cast<int32_t>(random() % static_cast<unsigned>(bound));
    };
    const int32_t vocab = model_.spec().vocab_size;
    std::vector<std::unique_ptr<Request>> requests;
    for (int32_t i = 0; i < batch; ++i) {
      std::vector<int32_t> prompt(static_cast<size_t>(settings_.prompt));
      for (int32_t& token : prompt) token = below(of_prompts, vocab);
      sample::SamplingParams params;
      params.temperature = 0.8f;
      params.seed = static_cast<uint64_t>(i) + 1;
      Request& request = *requests.emplace_back(
          std::make_unique<Request>(std::move(prompt), params, settings_.tokens, false));
      request.id = static_cast<uint64_t>(i);
      request.arrived = Clock::now();
      if (way.prediction < 0) continue;
      request.text = std::make_unique<TextIndex>(settings_.prompt + settings_.tokens);
      request.text->append(request.prompt);
      auto prediction = std::make_shared<TextIndex>(settings_.tokens);
      for (const int32_t token : expected[static_cast<size_t>(i)])
        prediction->append(below(of_predictions, 100) < 100 * way.prediction ? token
                                                                             : (token + 1) % vocab);
      request.prediction = std::move(prediction);
    }
    return requests;
  }

  static void compare(const std::vector<std::unique_ptr<Request>>& requests, Answers& expected) {
    const bool first = expected.empty();
    for (size_t i = 0; i < requests.size(); ++i) {
      std::vector<int32_t> answer;
      for (int32_t t = 0; t < requests[i]->log.size(); ++t)
        answer.push_back(requests[i]->log[t].token);
      if (first)
        expected.push_back(std::move(answer));
      else
        CHECK(answer == expected[i]);  // Drafts have changed an answer.
    }
  }

  const Settings& settings_;
  model::Model& model_;
  const kernels::Ops& ops_;
  const int members_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The interval of their median: order statistics on both sides of it, by the binomial
// distribution with a chance of 1/2. Of fewer than six values the whole range.
std::pair<double, double> interval(std::vector<double> values) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const double apart = values.size() < 6 ? 0 : std::floor((count - 1.96 * std::sqrt(count)) / 2);
  const auto low = static_cast<size_t>(std::max(apart, 0.0));
  return {values[low], values[values.size() - 1 - low]};
}

// What is kept of the speed without drafts, at least.
constexpr double kKeptMin = 0.98;
// Before `known` is measured each sequence has answered with so many tokens.
constexpr int32_t kKnownTokens = 1000;

// What a controller answers a second against none.
struct Compared {
  std::vector<double> fresh, known;
  std::array<uint64_t, 2> steps{};  // Of `known`: all, and those with drafts.

  // Whether `known` is at least as much; nothing where that is not decided.
  std::optional<bool> reaches(double goal) const {
    const auto [low, high] = interval(known);
    if (low >= goal) return true;
    if (high < goal) return false;
    return std::nullopt;
  }
};

Compared against_none(const Settings& settings, Bench& bench, int32_t batch, Answers& answers,
                      double goal, const std::function<Way()>& drafted) {
  constexpr size_t kPairs = 4;  // Of `known` in a round.
  Compared compared;
  const int32_t answers_before = (kKnownTokens + settings.tokens - 1) / settings.tokens;
  for (int32_t round = 1; round <= settings.rounds; ++round) {
    Bench::Engine none(bench, batch, {}), some(bench, batch, drafted());
    const auto ratio = [&] {
      const double plain = none.answer(answers);
      return some.answer(answers) / plain;
    };
    compared.fresh.push_back(ratio());
    for (int32_t i = 1; i < answers_before; ++i) some.answer(answers);
    none.answer(answers);  // The first one after a pause is slow.
    const std::array before = some.steps();
    for (size_t pair = 0; pair < kPairs; ++pair) compared.known.push_back(ratio());
    while (round == settings.rounds && !compared.reaches(goal) &&
           std::ssize(compared.known) < settings.pairs_max)
      compared.known.push_back(ratio());
    const std::array after = some.steps();
    for (size_t i = 0; i < after.size(); ++i) compared.steps[i] += after[i] - before[i];
  }
  return compared;
}

// Returns whether the goal was met.
bool print_compared(const Compared& compared, double goal) {
  const auto [low, high] = interval(compared.known);
  const std::optional<bool> reached = compared.reaches(goal);
  const double drafted = 100 * static_cast<double>(compared.steps[1]) /
                         static_cast<double>(std::max<uint64_t>(compared.steps[0], 1));
  std::printf("  %4.2f  %4.2f (%4.2f to %4.2f) %5.1f  %s %4.2f\n", median(compared.fresh),
              median(compared.known), low, high, drafted,
              !reached   ? "open"
              : *reached ? "ok, at least"
                         : "MISSED",
              goal);
  std::fflush(stdout);
  return reached.value_or(false);
}

// Predictions of which so much is right. Returns how many cells did not reach their goal.
int32_t measure_predictions(const Settings& settings, Bench& bench, int32_t batch,
                            Answers& answers) {
  int32_t failed = 0;
  for (const double right : {1.0, 0.9, 0.0}) {
    const double goal = right == 1 && batch == 1 ? 2.0 : kKeptMin;
    // The engine before the last one is gone when a way is asked for.
    std::optional<PredictionDrafts> predictions;
    std::optional<CopyDrafts> copies;
    const Compared got = against_none(settings, bench, batch, answers, goal, [&] {
      predictions.emplace(4 * batch + 8);
      copies.emplace();
      return Way{.options = {.sources = {&*predictions, &*copies}, .drafts_max = settings.drafts},
                 .prediction = right};
    });
    std::printf("prediction, %3.0f %% right:", 100 * right);
    failed += print_compared(got, goal) ? 0 : 1;
  }
  return failed;
}

// One batch: a table of chances by numbers of drafts. Returns how many cells did not reach their
// goal.
int32_t measure_controller(const Settings& settings, Bench& bench, int32_t vocab, int32_t batch,
                           Answers& answers) {
  std::vector<double> chances = {0.1, 0.3, 0.5, 0.7, 0.9};
  if (settings.right > 0) chances = {settings.right / 100.0};
  std::vector<int32_t> fixed = {1, 2, 3, 5, settings.drafts};
  std::ranges::sort(fixed);
  fixed.erase(std::ranges::unique(fixed).begin(), fixed.end());
  const auto with = [&](DraftSource& source, int32_t drafts, bool measured) {
    return Way{.options = {.sources = {&source}, .drafts_max = drafts, .measured = measured}};
  };
  // With so many drafts in each step, against none.
  const auto ratio = [&](DraftSource& source, int32_t drafts) {
    std::vector<double> values;
    for (int32_t round = 0; round < settings.rounds; ++round) {
      const double none = bench.run(batch, {}, answers);
      values.push_back(bench.run(batch, with(source, drafts, false), answers) / none);
    }
    return median(values);
  };
  std::vector<double> none_right(fixed.size());
  KnownChance wrong(answers, vocab, 0);
  for (size_t k = 0; k < fixed.size(); ++k) none_right[k] = ratio(wrong, fixed[k]);
  std::printf("%-8s", "right");
  for (const int32_t k : fixed) std::printf("  %4d (formula)", k);
  std::printf("   new  known                steps\n");
  int32_t failed = 0;
  for (const double chance : chances) {
    KnownChance source(answers, vocab, chance);
    std::printf("%-8.1f", chance);
    double best = 1;
    for (size_t k = 0; k < fixed.size(); ++k) {
      double expected = 0;
      for (int32_t i = 0; i <= fixed[k]; ++i) expected += std::pow(chance, i);
      const double got = ratio(source, fixed[k]);
      best = std::max(best, got);
      std::printf("  %4.2f   (%5.2f)", got, expected * none_right[k]);
    }
    const double goal = std::max(kKeptMin, (batch == 1 ? 0.95 : 0.9) * best);
    const Compared got = against_none(settings, bench, batch, answers, goal,
                                      [&] { return with(source, settings.drafts, true); });
    failed += print_compared(got, goal) ? 0 : 1;
  }
  return failed;
}

int32_t measure(const Settings& settings, Bench& bench, int32_t vocab, int32_t batch) {
  Answers answers;
  bench.run(batch, {}, answers);  // Fills them.
  std::printf("\nbatch %d, off %.1f tok/s\n", batch, bench.run(batch, {}, answers));
  int32_t failed = 0;
  if (settings.controller != 0)
    failed += measure_controller(settings, bench, vocab, batch, answers);
  if (settings.predictions != 0) failed += measure_predictions(settings, bench, batch, answers);
  return failed;
}

Result<int32_t> bench_all(const Settings& settings) {
  WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(settings.model));
  WEIR_ASSIGN(const kernels::Isa isa, kernels::choose_isa({}));
  const kernels::Ops& ops = kernels::ops_for(isa);
  const int members = ThreadTeam::usable_cores();
  std::unique_ptr<model::Model> model;
  {
    ThreadTeam team(members);
    const int32_t context = settings.prompt + settings.tokens + 1;
    WEIR_ASSIGN(model,
                model::Model::load(card, {.rows_max = 512, .context_max = context}, ops, team));
  }
  std::printf("%s, %s, %d threads, answers of %d tokens, at most %d drafts\n",
              settings.model.c_str(), std::string(kernels::isa_name(isa)).c_str(), members,
              settings.tokens, settings.drafts);
  Bench bench(settings, *model, ops, members);
  int32_t failed = 0;
  std::vector<int32_t> batches = {1, 4, 8, 32};
  if (settings.batch > 0) batches = {settings.batch};
  for (const int32_t batch : batches)
    failed += measure(settings, bench, model->spec().vocab_size, batch);
  std::printf("\n%d cells did not reach their goal\n", failed);
  return failed;
}

}  // namespace
}  // namespace weir::sched

int main(int argc, char** argv) {
  weir::sched::Settings settings;
  if (!weir::sched::read_settings(argc, argv, settings)) {
    std::fprintf(stderr,
                 "usage: speculation_bench MODEL [--tokens N] [--prompt N] [--rounds N] "
                 "[--pairs-max N] [--batch N] [--right N] [--drafts 1..15] "
                 "[--controller 0|1] [--predictions 0|1]\n");
    return 2;
  }
  const weir::Result<int32_t> failed = weir::sched::bench_all(settings);
  if (!failed) {
    std::fprintf(stderr, "%s\n", failed.error().message.c_str());
    return 2;
  }
  return *failed == 0 ? 0 : 1;
}
