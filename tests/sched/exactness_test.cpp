// With a real model: 64 requests at once get the tokens and the log-probabilities, to the bit, that
// each gets alone; with and without the prefix cache, with pages so few that sequences are
// preempted, beside other callers, in both compute modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "sched/engine_runner.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {
namespace {

using Requests = std::vector<std::unique_ptr<Request>>;

constexpr int32_t kRequests = 64;

// Prompts of 3 to 300 tokens, of which a third begin alike; greedy and seeded, some with penalties.
Requests make_requests(int32_t vocab_size) {
  std::mt19937 rng(20261121);
  const auto random_token = [&] {
    return static_cast<int32_t>(rng() % static_cast<unsigned>(vocab_size));
  };
  std::vector<int32_t> shared(130);
  for (int32_t& token : shared) token = random_token();
  Requests requests;
  for (int32_t i = 0; i < kRequests; ++i) {
    std::vector<int32_t> prompt(3 + rng() % (i % 8 == 0 ? 300 : 60));
    for (int32_t& token : prompt) token = random_token();
    if (i % 3 == 0) prompt.insert(prompt.begin(), shared.begin(), shared.end());
    sample::SamplingParams params;
    params.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    params.top_p = i % 4 == 1 ? 0.9f : 1.0f;
    params.repetition_penalty = i % 5 == 0 ? 1.1f : 1.0f;
    params.top_logprobs = i % 4 == 0 ? 4 : 0;
    params.seed = static_cast<uint64_t>(i) * 77;
    const auto max_tokens = static_cast<int32_t>(1 + rng() % 40);
    requests.push_back(
        std::make_unique<Request>(std::move(prompt), params, max_tokens, /*logprobs=*/true));
    requests.back()->arrived = Clock::now();
    requests.back()->id = static_cast<uint64_t>(i);
  }
  return requests;
}

struct Case {
  model::Compute compute = model::Compute::kFast;
  int members = 2;
  int32_t window = 0;        // Of all layers from
  int32_t window_layer = 0;  // this one on; 0: of none.
  std::string family = "";   // A family's tiny checkpoint.
};

// A family's, or the built-in model, where asked for with windows, as config.json may give it some.
card::ModelCard model_of(const Case& tested) {
  if (!tested.family.empty())
    return *card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/" + tested.family);
  std::vector<std::string> overrides;
  if (tested.window > 0)
    overrides = {"use_sliding_window=true", "sliding_window=" + std::to_string(tested.window),
                 "max_window_layers=" + std::to_string(tested.window_layer)};
  return *card::ModelCard::open(card::default_model(), overrides);
}

class Exactness : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    ops_ = &kernels::ops_for(kernels::detect_isa());
    ThreadTeam team(GetParam().members);
    Result<std::unique_ptr<model::Model>> model = model::Model::load(
        model_of(GetParam()), {.compute = GetParam().compute, .rows_max = 256, .context_max = 1024},
        *ops_, team);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_ = std::move(*model);
    RunnerOptions alone = options(/*page_count=*/64, /*prefix_cache=*/false);
    alone.engine.running_max = 1;
    alone.keeps_all = true;
    expected_ = run(alone);
  }

  RunnerOptions options(int32_t page_count, bool prefix_cache) const {
    RunnerOptions options;
    options.engine.step_tokens_max = 256;
    options.engine.prefix_cache = prefix_cache;
    options.page_count = page_count;
    options.members = GetParam().members;
    options.kv_type = GetParam().compute == model::Compute::kExact ? kernels::FloatType::kF32
                                                                   : kernels::FloatType::kF16;
    return options;
  }

  // Submits all at once; with running_max 1 each runs alone. `callers`: one in so many is another
  // caller's; 0: none is.
  Requests run(RunnerOptions options, size_t callers = 0) {
    options.held = true;
    Requests requests = make_requests(model_->spec().vocab_size);
    for (size_t i = 0; callers > 0 && i < requests.size(); i += callers)
      requests[i]->caller = i + 1;
    EngineRunner runner(*model_, *ops_, options);
    for (const auto& request : requests) {
      const Result<void> submitted = runner.handle().submit(request.get());
      EXPECT_TRUE(submitted) << submitted.error().message;
    }
    runner.begin();
    for (const auto& request : requests) runner.wait(*request);
    runner.stop();
    preemptions_ = runner.handle().stats().preemptions.value();
    hits_ = runner.handle().stats().prefix_hits.value();
    steps_ = runner.handle().stats().steps.value();
    return requests;
  }

  static bool same(const TokenLogprob& a, const TokenLogprob& b) {
    return a.token == b.token &&
           std::bit_cast<uint32_t>(a.logprob) == std::bit_cast<uint32_t>(b.logprob);
  }

  void expect_equal(const Requests& requests) const {
    for (size_t i = 0; i < requests.size(); ++i) {
      const TokenLog& log = requests[i]->log;
      const TokenLog& expected = expected_[i]->log;
      ASSERT_EQ(log.size(), expected.size()) << "request " << i;
      ASSERT_EQ(log.finish_reason(), expected.finish_reason()) << "request " << i;
      for (int32_t t = 0; t < log.size(); ++t) {
        ASSERT_TRUE(same(log[t], expected[t])) << "request " << i << " token " << t;
        for (size_t k = 0; k < static_cast<size_t>(log.top_count()); ++k)
          ASSERT_TRUE(same(log.top(t)[k], expected.top(t)[k])) << "request " << i << " token " << t;
      }
    }
  }

  const kernels::Ops* ops_ = nullptr;
  std::unique_ptr<model::Model> model_;
  Requests expected_;
  uint64_t preemptions_ = 0, hits_ = 0, steps_ = 0;
};

TEST_P(Exactness, SixtyFourAtOnceGetWhatEachGetsAlone) {
  const uint64_t steps_alone = steps_;
  {
    SCOPED_TRACE("without the prefix cache");
    expect_equal(run(options(/*page_count=*/1024, /*prefix_cache=*/false)));
    EXPECT_LT(steps_, steps_alone / 8);  // They did run together.
    EXPECT_EQ(preemptions_, 0u);
  }
  {
    SCOPED_TRACE("with the prefix cache");
    expect_equal(run(options(1024, true)));
    EXPECT_GT(hits_, 128u * 15);  // Of 22 that begin with 130 equal tokens.
  }
  for (const bool prefix_cache : {false, true}) {
    SCOPED_TRACE("preempted");
    expect_equal(run(options(24, prefix_cache)));
    EXPECT_GT(preemptions_, 0u);
  }
  {
    SCOPED_TRACE("a few at once, with few pages of windows");
    RunnerOptions few = options(48, true);
    few.engine.running_max = 3;
    few.engine.step_tokens_max = 64;
    expect_equal(run(few));
  }
  for (const int32_t page_count : {1024, 24}) {
    SCOPED_TRACE("one caller has most of them");
    expect_equal(run(options(page_count, true), /*callers=*/8));
  }
}

// One sequence with one to eight rows in a step, right and wrong, beside sixteen without drafts;
// then drafts for all.
TEST_P(Exactness, DraftsChangeNoBit) {
  std::vector<std::vector<int32_t>> texts;
  for (const auto& request : expected_) {
    std::vector<int32_t>& text = texts.emplace_back();
    for (int32_t t = 0; t < request->log.size(); ++t) text.push_back(request->log[t].token);
  }
  const auto longest = std::ranges::max_element(texts, {}, &std::vector<int32_t>::size);
  const auto one = static_cast<uint64_t>(longest - texts.begin());
  const auto run_with = [&](MadeUpDrafts::Way way, const MadeUpDrafts::Most& most,
                            const RunnerOptions& options) {
    MadeUpDrafts drafts(
        way, model_->spec().vocab_size,
        [&](const Request& request) -> const std::vector<int32_t>& { return texts[request.id]; },
        most);
    RunnerOptions with = options;
    with.engine.drafts = &drafts;
    expect_equal(run(with));
    EXPECT_EQ(drafts.wrong_pending(), 0);
    return drafts.asked();
  };
  RunnerOptions beside = options(1024, /*prefix_cache=*/true);
  beside.engine.running_max = 17;
  const bool states = std::ranges::any_of(model_->memory_needs(), [](const kv::MemoryNeed& need) {
    return std::holds_alternative<kv::StateNeed>(need);
  });
  for (int32_t rows = 1; rows <= 8; ++rows) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    const auto way = rows % 2 == 0 ? MadeUpDrafts::Way::kAllRight : MadeUpDrafts::Way::kRandom;
    const int64_t asked = run_with(
        way, [&](const Request& request) { return request.id == one ? rows - 1 : 0; }, beside);
    EXPECT_EQ(asked > 0, rows > 1 && !states);
  }
  const auto all = [](const Request& request) { return static_cast<int32_t>(request.id % 16); };
  for (const auto way : {MadeUpDrafts::Way::kNoneRight, MadeUpDrafts::Way::kLastWrong})
    run_with(way, all, options(1024, false));
  run_with(MadeUpDrafts::Way::kRandom, all, options(24, true));
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Exactness,
    testing::Values(Case{model::Compute::kFast, 2}, Case{model::Compute::kExact, 2},
                    Case{model::Compute::kFast, 1}, Case{model::Compute::kFast, 2, 40, 3},
                    Case{model::Compute::kExact, 2, 70, 0},
                    Case{model::Compute::kFast, 2, 0, 0, "gemma2"},
                    Case{model::Compute::kExact, 2, 0, 0, "gemma3_text_linear_rope"},
                    Case{model::Compute::kFast, 2, 0, 0, "qwen3_next"},
                    Case{model::Compute::kExact, 1, 0, 0, "qwen3_next"},
                    Case{model::Compute::kExact, 1, 0, 0, "deepseek_v2"},
                    Case{model::Compute::kFast, 2, 0, 0, "mlxconv_deepseek_v2_lite"}),
    [](const testing::TestParamInfo<Case>& tested) {
      const bool exact = tested.param.compute == model::Compute::kExact;
      const int32_t window = tested.param.window;
      return std::string(exact ? "Exact" : "Fast") + "Threads" +
             std::to_string(tested.param.members) +
             (window == 0 ? "" : "Window" + std::to_string(window)) + tested.param.family;
    });

}  // namespace
}  // namespace weir::sched
