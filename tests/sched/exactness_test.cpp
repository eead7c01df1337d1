// With a real model: 64 requests at once get the tokens and the log-probabilities, to the bit, that
// each gets alone; with and without the prefix cache, with pages so few that sequences are
// preempted, beside other callers, in both compute modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "card/default_model.h"
#include "card/model_card.h"
#include "sched/exactness_world.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {
namespace {

struct Case {
  model::Compute compute = model::Compute::kFast;
  int members = 2;
  int32_t window = 0;        // Of all layers from
  int32_t window_layer = 0;  // this one on; 0: of none.
  std::string family = "";   // A family's tiny checkpoint.
  std::optional<kv::Format> format = {};
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
    const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
    ThreadTeam team(GetParam().members);
    Result<std::unique_ptr<model::Model>> model = model::Model::load(
        model_of(GetParam()), {.compute = GetParam().compute,
                                      .rows_max = 256,
                                      .draft_rows_max = 128,
                                      .context_max = 1024},
        ops, team);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    world_.emplace(std::move(*model), ops, GetParam().members, RequestKinds{}, GetParam().format);
  }

  std::optional<ExactnessWorld> world_;
};

TEST_P(Exactness, SixtyFourAtOnceGetWhatEachGetsAlone) {
  ExactnessWorld& world = *world_;
  const uint64_t steps_alone = world.steps();
  {
    SCOPED_TRACE("without the prefix cache");
    world.expect_equal(world.run(world.options(/*page_count=*/1024, /*prefix_cache=*/false)));
    EXPECT_LT(world.steps(), steps_alone / 8);  // They did run together.
    EXPECT_EQ(world.preemptions(), 0u);
  }
  {
    SCOPED_TRACE("with the prefix cache");
    world.expect_equal(world.run(world.options(1024, true)));
    EXPECT_GT(world.hits(), 128u * 15);  // Of 22 that begin with 130 equal tokens.
  }
  for (const bool prefix_cache : {false, true}) {
    SCOPED_TRACE("preempted");
    world.expect_equal(world.run(world.options(24, prefix_cache)));
    EXPECT_GT(world.preemptions(), 0u);
  }
  {
    SCOPED_TRACE("a few at once, with few pages of windows");
    RunnerOptions few = world.options(48, true);
    few.engine.running_max = 3;
    few.engine.step_tokens_max = 64;
    world.expect_equal(world.run(few));
  }
  for (const int32_t page_count : {1024, 24}) {
    SCOPED_TRACE("one caller has most of them");
    world.expect_equal(world.run(world.options(page_count, true), /*callers=*/8));
  }
}

// One sequence with one to eight rows in a step, right and wrong, beside sixteen without drafts;
// then drafts for all.
TEST_P(Exactness, DraftsChangeNoBit) {
  ExactnessWorld& world = *world_;
  const std::vector<std::vector<int32_t>> texts = world.answers();
  const auto longest = std::ranges::max_element(texts, {}, &std::vector<int32_t>::size);
  const auto one = static_cast<uint64_t>(longest - texts.begin());
  const auto run_with = [&](MadeUpDrafts::Way way, const MadeUpDrafts::Most& most,
                            const RunnerOptions& options) {
    MadeUpDrafts drafts(
        way, world.model().spec().vocab_size,
        [&](const Request& request) -> const std::vector<int32_t>& { return texts[request.id]; },
        most);
    RunnerOptions with = options;
    with.engine.speculation = {.sources = {&drafts}, .drafts_max = 15, .measured = false};
    world.expect_equal(world.run(with));
    EXPECT_EQ(drafts.wrong_pending(), 0);
    return drafts.asked();
  };
  RunnerOptions beside = world.options(1024, /*prefix_cache=*/true);
  beside.engine.running_max = 17;
  for (int32_t rows = 1; rows <= 8; ++rows) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    const auto way = rows % 2 == 0 ? MadeUpDrafts::Way::kAllRight : MadeUpDrafts::Way::kRandom;
    const int64_t asked = run_with(
        way, [&](const Request& request) { return request.id == one ? rows - 1 : 0; }, beside);
    EXPECT_EQ(asked > 0, rows > 1);
  }
  const auto all = [](const Request& request) { return static_cast<int32_t>(request.id % 16); };
  for (const auto way : {MadeUpDrafts::Way::kNoneRight, MadeUpDrafts::Way::kLastWrong})
    run_with(way, all, world.options(1024, false));
  run_with(MadeUpDrafts::Way::kRandom, all, world.options(24, true));
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
                    Case{model::Compute::kFast, 2, 0, 0, "mlxconv_deepseek_v2_lite"},
                    Case{model::Compute::kExact, 2, 0, 0, "deepseek_v4"},
                    Case{model::Compute::kFast, 1, 0, 0, "deepseek_v4"},
                    Case{model::Compute::kFast, 2, 0, 0, "", kv::Format::kTq4},
                    Case{model::Compute::kExact, 1, 40, 3, "", kv::Format::kInt8},
                    Case{model::Compute::kFast, 2, 0, 0, "gemma2", kv::Format::kTq3},
                    Case{model::Compute::kFast, 1, 0, 0, "qwen3_next", kv::Format::kTq4}),
    [](const testing::TestParamInfo<Case>& tested) {
      const bool exact = tested.param.compute == model::Compute::kExact;
      const int32_t window = tested.param.window;
      return std::string(exact ? "Exact" : "Fast") + "Threads" +
             std::to_string(tested.param.members) +
             (window == 0 ? "" : "Window" + std::to_string(window)) + tested.param.family +
             (tested.param.format ? tested.param.format->name() : "");
    });

}  // namespace
}  // namespace weir::sched
