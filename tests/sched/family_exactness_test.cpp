// Every family that this build knows, from its fixture: requests together, with pages so few that
// sequences are preempted, with prompts in pieces of odd sizes and with the prefix cache, get to
// the last bit what each gets alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "model/families.h"
#include "sched/exactness_world.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {
namespace {

// Folders of all fixtures, in order; those of the source tree where no others are unpacked.
std::vector<std::string> fixture_folders() {
  const char* const unpacked = std::getenv("WEIR_FAMILIES");
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           unpacked != nullptr ? unpacked : WEIR_SOURCE_DIR "/tests/data/families"))
    if (std::filesystem::exists(entry.path() / "config.json"))
      folders.push_back(entry.path().string());
  std::ranges::sort(folders);
  return folders;
}

bool known(const card::ModelCard& card) {
  std::string_view architecture;
  return card.config.root()["architectures"].at(0).get(architecture) == simdjson::SUCCESS &&
         model::family_known(architecture);
}

// Its tokens attend to what an encoder makes of a sound.
bool hears(const card::ModelCard& card) {
  std::string_view type;
  return card.config.root()["model_type"].get(type) == simdjson::SUCCESS && type == "whisper";
}

// Keys that depend on the length of a sequence are not shared.
bool depends_on_length(const model::ModelSpec& spec) {
  return std::ranges::any_of(spec.sublayers, [](const model::Sublayer& sublayer) {
    const model::Rope* const rope = model::rope_of(sublayer.op);
    return rope != nullptr && rope->length_dependent();
  });
}

// Prompts of some pages, as long as the model's context allows.
RequestKinds kinds_within(int32_t context) {
  RequestKinds kinds = {.count = 24, .shared = 70, .long_own = 120, .own = 40, .answer = 70};
  const int32_t longest = kinds.shared + kinds.long_own + kinds.answer + 4;
  if (context >= longest) return kinds;
  for (int32_t* const part : {&kinds.shared, &kinds.long_own, &kinds.own, &kinds.answer})
    *part = std::max(1, *part * (context - 4) / longest);
  return kinds;
}

void check_family(const card::ModelCard& card, model::Compute compute) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  constexpr int kMembers = 2;
  ThreadTeam team(kMembers);
  Result<std::unique_ptr<model::Model>> model = model::Model::load(
      card, {.compute = compute, .rows_max = 128, .draft_rows_max = 64, .context_max = 512}, ops, team);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const RequestKinds kinds = kinds_within((*model)->context_max());
  ExactnessWorld world(std::move(*model), ops, kMembers, kinds);
  {
    SCOPED_TRACE("together");
    world.expect_equal(world.run(world.options(/*page_count=*/256, /*prefix_cache=*/false)));
  }
  {
    SCOPED_TRACE("prompts in pieces, known beginnings");
    RunnerOptions pieces = world.options(256, true);
    pieces.engine.step_tokens_max = 37;
    pieces.engine.running_max = 3;
    world.expect_equal(world.run(pieces));
    if (!depends_on_length(world.model().spec())) {
      EXPECT_GT(world.hits(), 0u);
    }
  }
  {
    SCOPED_TRACE("drafts, right and wrong");
    const std::vector<std::vector<int32_t>> texts = world.answers();
    MadeUpDrafts drafts(
        MadeUpDrafts::Way::kRandom, world.model().spec().vocab_size,
        [&](const Request& request) -> const std::vector<int32_t>& { return texts[request.id]; },
        [](const Request& request) { return static_cast<int32_t>(request.id % 8); });
    RunnerOptions with = world.options(256, true);
    with.engine.speculation = {.sources = {&drafts}, .measured = false};
    world.expect_equal(world.run(with));
    EXPECT_EQ(drafts.wrong_pending() + drafts.wrong_positions(), 0);
  }
  {
    SCOPED_TRACE("preempted");
    const int32_t longest = kinds.shared + kinds.long_own + kinds.answer + 4;
    world.expect_equal(world.run(world.options(longest / kernels::kPageTokens + 2, true)));
    EXPECT_GT(world.preemptions(), 0u);
  }
}

TEST(FamilyExactness, EachGetsTogetherWhatItGetsAlone) {
  int32_t families = 0;
  for (const std::string& folder : fixture_folders()) {
    SCOPED_TRACE(folder);
    const Result<card::ModelCard> card = card::ModelCard::open_folder(folder);
    if (!card || !known(*card)) continue;  // weir-check families says why, and fails what it must.
    if (hears(*card)) continue;  // Each request needs a sound: hearing_fixture_test.cpp.
    for (const model::Compute compute : {model::Compute::kExact, model::Compute::kFast})
      check_family(*card, compute);
    if (testing::Test::HasFatalFailure()) return;
    ++families;
  }
  EXPECT_GE(families, 8) << "those of the source tree";
}

}  // namespace
}  // namespace weir::sched
