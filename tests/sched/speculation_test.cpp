// Speculation with a real model, on every ISA that this machine has: 64 requests with drafts from
// their texts, from predictions, and from a source that knows the answers get to the last bit what
// each gets alone without; beside prompts in pieces, and with pages too few for all.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "card/default_model.h"
#include "card/model_card.h"
#include "sched/answer_drafts.h"
#include "sched/copy_drafts.h"
#include "sched/exactness_world.h"
#include "sched/made_up_drafts.h"
#include "sched/prediction_drafts.h"

namespace weir::sched {
namespace {

class SpeculationOn : public testing::TestWithParam<kernels::Isa> {
 protected:
  void SetUp() override {
    if (!kernels::isa_available(GetParam()))
      GTEST_SKIP() << "this machine has no " << kernels::isa_name(GetParam());
    const kernels::Ops& ops = kernels::ops_for(GetParam());
    ThreadTeam team(2);
    // With the plain loops a real model would take minutes.
    const auto card =
        GetParam() == kernels::Isa::kScalar
            ? card::ModelCard::open_folder(WEIR_SOURCE_DIR
                                           "/tests/data/families/mlx_qwen3_moe_q4_g64")
            : card::ModelCard::open(card::default_model());
    ASSERT_TRUE(card.has_value()) << card.error().message;
    Result<std::unique_ptr<model::Model>> model =
        model::Model::load(*card, {.rows_max = 256}, ops, team);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const RequestKinds within_256 = {.shared = 60, .long_own = 100};
    world_.emplace(std::move(*model), ops, 2,
                   GetParam() == kernels::Isa::kScalar ? within_256 : RequestKinds{});
    answers_ = world_->answers();
  }

  // Gives a request what its drafts come from: its text, and of every other one a prediction that
  // is right but for each tenth token.
  void give_texts(Request& request) {
    request.text = std::make_unique<TextIndex>(2000);
    request.text->append(request.prompt);
    if (request.id % 2 == 0) return;
    auto prediction = std::make_shared<TextIndex>(2000);
    const std::vector<int32_t>& answer = answers_[request.id];
    for (size_t i = 0; i < answer.size(); ++i)
      prediction->append(i % 10 == 9 ? (answer[i] + 1) % world_->model().spec().vocab_size
                                     : answer[i]);
    request.prediction = std::move(prediction);
  }

  std::optional<ExactnessWorld> world_;
  std::vector<std::vector<int32_t>> answers_;
};

TEST_P(SpeculationOn, TextsAndPredictionsChangeNoBit) {
  for (const bool measured : {false, true})
    for (const int32_t page_count : {1024, 24}) {
      SCOPED_TRACE(std::string(measured ? "as many as pay" : "all") + " with " +
                   std::to_string(page_count) + " pages");
      PredictionDrafts predictions(200);
      CopyDrafts copies;
      AnswerDrafts answers(2);
      RunnerOptions options = world_->options(page_count, /*prefix_cache=*/true);
      if (page_count > 24) options.engine.step_tokens_max = 100;  // Prompts come in pieces.
      options.engine.running_max = 16;
      options.engine.queue_max = 100;
      options.engine.speculation = {
          .sources = {&predictions, &copies, &answers}, .drafts_max = 7, .measured = measured};
      world_->expect_equal(
          world_->run(options, /*callers=*/5, [&](Request& request) { give_texts(request); }));
      if (!measured) {
        EXPECT_GT(world_->drafts(), 50u);
        EXPECT_GT(world_->drafts_right(), 40u);
      }
    }
}

// What was answered before, to the same questions and to others.
TEST_P(SpeculationOn, EarlierAnswersChangeNoBit) {
  AnswerDrafts answers(2);
  RunnerOptions options = world_->options(1024, /*prefix_cache=*/true);
  options.engine.running_max = 16;
  options.engine.queue_max = 100;
  options.engine.speculation = {.sources = {&answers}, .drafts_max = 7, .measured = false};
  const auto run = [&] {
    world_->expect_equal(
        world_->run(options, /*callers=*/5, [&](Request& request) { give_texts(request); }));
    return world_->drafts_right();
  };
  const uint64_t first = run();
  const uint64_t again = run();
  EXPECT_GT(again, first + 100);
}

// Slices of 1 to 16 rows, all right, or all but the last, or none.
TEST_P(SpeculationOn, NoWidthChangesABit) {
  for (int32_t width = 1; width <= 16; ++width) {
    SCOPED_TRACE(std::to_string(width) + " rows");
    constexpr MadeUpDrafts::Way kWays[] = {MadeUpDrafts::Way::kAllRight,
                                           MadeUpDrafts::Way::kLastWrong,
                                           MadeUpDrafts::Way::kNoneRight};
    MadeUpDrafts drafts(
        kWays[width % 3], world_->model().spec().vocab_size,
        [&](const Request& request) -> const std::vector<int32_t>& {
          return answers_[request.id];
        },
        [width](const Request&) { return width - 1; });
    RunnerOptions options = world_->options(1024, /*prefix_cache=*/false);
    options.engine.running_max = 15;  // All of them have as many rows in a step.
    options.engine.speculation = {.sources = {&drafts}, .drafts_max = 15, .measured = false};
    world_->expect_equal(world_->run(options));
    EXPECT_EQ(drafts.wrong_pending() + drafts.wrong_positions(), 0);
    EXPECT_EQ(world_->drafts() > 0, width > 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SpeculationOn,
                         testing::Values(kernels::Isa::kScalar, kernels::Isa::kAvx2,
                                         kernels::Isa::kAvx512, kernels::Isa::kAmx),
                         [](const testing::TestParamInfo<kernels::Isa>& tested) {
                           return std::string(kernels::isa_name(tested.param));
                         });

}  // namespace
}  // namespace weir::sched
