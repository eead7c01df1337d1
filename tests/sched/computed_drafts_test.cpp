// Drafters with weights under an engine: answers are, to the bit, those without them, and drafts of
// a trained drafter are taken as often as they are right.
#include "sched/computed_drafts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "card/default_model.h"
#include "model/drafts/drafter.h"
#include "sched/exactness_world.h"

namespace weir::sched {
namespace {

constexpr int kMembers = 2;

// A model with a drafter: `folder` has both (an MTP module), or is the tiny model's drafter's.
std::unique_ptr<model::Model> load(const std::string& folder, bool of_tiny, model::Compute compute,
                                   int32_t drafts_max = 7) {
  auto files = card::ModelCard::open_folder(folder);
  CHECK(files.has_value());
  auto tiny = card::ModelCard::open(card::default_model());
  CHECK(tiny.has_value());
  ThreadTeam team(kMembers);
  auto model = model::Model::load(
      of_tiny ? *tiny : *files,
      {.compute = compute,
       .rows_max = 128,
       .draft_rows_max = 64,
       .context_max = 512,
       .draft = model::DraftOptions{.card = of_tiny ? &*files : nullptr, .drafts_max = drafts_max}},
      kernels::ops_for(kernels::detect_isa()), team);
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return model ? *std::move(model) : nullptr;
}

// Together, with pages so few that sequences may give way, with prompts in pieces, with known
// beginnings, and as the controller chooses.
void expect_same_answers(std::unique_ptr<model::Model> model, int32_t requests) {
  ASSERT_NE(model, nullptr);
  struct Way {
    bool measured, prefix_cache;
    int32_t pages, step_tokens;
  };
  constexpr Way kWays[] = {{false, true, 256, 37}, {false, false, 12, 128}, {true, true, 12, 64}};
  const RequestKinds kinds = {
      .count = requests, .shared = 70, .long_own = 120, .own = 40, .answer = 60};
  ExactnessWorld world(std::move(model), kernels::ops_for(kernels::detect_isa()), kMembers, kinds);
  for (const Way& way : kWays) {
    SCOPED_TRACE(testing::Message() << way.pages << " pages, steps of " << way.step_tokens);
    RunnerOptions options = world.options(way.pages, way.prefix_cache);
    options.computed_drafts = true;
    options.engine.speculation.measured = way.measured;
    options.engine.step_tokens_max = way.step_tokens;
    options.engine.running_max = 8;
    world.expect_equal(world.run(options));
    if (!way.measured) {
      EXPECT_GT(world.drafts(), 100u);
    }
  }
}

class ModuleDrafts : public testing::TestWithParam<const char*> {};

TEST_P(ModuleDrafts, ChangeNoAnswer) {
  for (const model::Compute compute : {model::Compute::kExact, model::Compute::kFast})
    expect_same_answers(load(WEIR_SOURCE_DIR "/tests/data/drafts/mtp_" + std::string(GetParam()),
                             /*of_tiny=*/false, compute),
                        /*requests=*/24);
}

INSTANTIATE_TEST_SUITE_P(Families, ModuleDrafts,
                         testing::Values("deepseek", "glm", "mimo", "qwen3_5", "qwen3_next"),
                         [](const auto& family) { return std::string(family.param); });

// Relative to the folder of models.
class TrainedDrafts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* models = std::getenv("WEIR_MODELS");
    folder_ = (models == nullptr ? WEIR_SOURCE_DIR "/../shared/models" : std::string(models)) +
              GetParam();
    if (!std::filesystem::exists(folder_ + "/config.json"))
      GTEST_SKIP() << folder_ << " is not here";
  }

  // Of all drafts of some chats, greedy and one after another, those that were right; `again`: when
  // the same chats come a second time, so that their beginnings are known.
  double share_right(model::Model& model, bool again) const {
    RunnerOptions options;
    options.engine.step_tokens_max = model.options().rows_max;
    options.engine.running_max = 1;
    options.engine.speculation = {.drafts_max = 4, .measured = false};
    options.members = kMembers;
    options.page_count = 512;
    options.computed_drafts = true;
    EngineRunner runner(model, kernels::ops_for(kernels::detect_isa()), options);
    const EngineStats& stats = runner.handle().stats();
    double share = 0;
    for (int pass = 0; pass < (again ? 2 : 1); ++pass) {
      const uint64_t drafts = stats.drafts.value(), right = stats.drafts_taken.value();
      const Requests requests = chats();
      for (const auto& request : requests) {
        EXPECT_TRUE(runner.handle().submit(request.get()));
        runner.wait(*request);
      }
      share = static_cast<double>(stats.drafts_taken.value() - right) /
              static_cast<double>(stats.drafts.value() - drafts);
      if (pass == 1) {
        EXPECT_GT(stats.prefix_hits.value(), 0u);
      }
    }
    return share;
  }

  std::string folder_;

 private:
  // Long enough together that the second time their beginnings are known.
  static Requests chats() {
    std::ifstream file(WEIR_SOURCE_DIR "/tests/data/drafts/chats.txt");
    std::vector<int32_t> system;
    Requests requests;
    for (std::string line; std::getline(file, line) && requests.size() < 6;) {
      std::istringstream words(line);
      std::vector<int32_t> prompt = system;
      for (int32_t id = 0; words >> id;) prompt.push_back(id);
      if (system.empty()) {  // Three turns that all others follow.
        for (int turn = 0; turn < 3; ++turn)
          system.insert(system.end(), prompt.begin(), prompt.end());
        continue;
      }
      sample::SamplingParams params;
      params.temperature = 0;
      params.stop_token_ids = {8187, 8185};
      requests.push_back(std::make_unique<Request>(std::move(prompt), params, 60, false));
      requests.back()->arrived = Clock::now();
      requests.back()->id = requests.size();
    }
    return requests;
  }
};

TEST_P(TrainedDrafts, ChangeNoAnswer) {
  for (const model::Compute compute : {model::Compute::kExact, model::Compute::kFast})
    expect_same_answers(load(folder_, /*of_tiny=*/true, compute), /*requests=*/8);
}

// What lies in pages of a known beginning drafts as what was computed.
TEST_P(TrainedDrafts, AreTakenAsOftenAfterAKnownBeginning) {
  const auto model = load(folder_, /*of_tiny=*/true, model::Compute::kExact, 4);
  ASSERT_NE(model, nullptr);
  const double cold = share_right(*model, false), warm = share_right(*model, true);
  EXPECT_GT(cold, 0.2);
  EXPECT_NEAR(warm, cold, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Drafters, TrainedDrafts,
                         testing::Values("/weir-tiny-draft", "/../drafters/weir-tiny-eagle3",
                                         "/../drafters/weir-tiny-mtp",
                                         "/../drafters/weir-tiny-dflash"),
                         [](const auto& drafter) {
                           const std::string name = drafter.param;
                           return name.substr(name.rfind('-') + 1);
                         });

}  // namespace
}  // namespace weir::sched
