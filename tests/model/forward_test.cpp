// The forward pass against the reference's answers, and its independence of batch and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "../../tools/check/family_fixture.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> fixture_folders() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(WEIR_SOURCE_DIR "/tests/data/families"))
    if (entry.is_directory()) folders.push_back(entry.path().string());
  std::ranges::sort(folders);
  return folders;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  return fs::path(info.param).filename().string();
}

class FamilyTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Model> load(const std::string& folder, Compute compute, kernels::Isa isa,
                                     ThreadTeam& team) {
    const auto card = card::ModelCard::open_folder(folder);
    EXPECT_TRUE(card) << card.error().message;
    const ModelOptions options = {.compute = compute, .rows_max = 64, .context_max = 256};
    auto model = Model::load(*card, options, kernels::ops_for(isa), team);
    EXPECT_TRUE(model) << model.error().message;
    return model ? std::move(*model) : nullptr;
  }
  static void check(const std::string& folder, Compute compute, kernels::Isa isa, int threads) {
    ThreadTeam team(threads);
    auto fixture = check::FamilyFixture::open(folder);
    ASSERT_TRUE(fixture) << fixture.error().message;
    const std::unique_ptr<Model> model = load(folder, compute, isa, team);
    ASSERT_NE(model, nullptr);
    const auto comparison = check::compare_family(*fixture, *model, team, kernels::FloatType::kF32);
    ASSERT_TRUE(comparison) << comparison.error().message;
    EXPECT_EQ(check::family_failure(*fixture, *comparison, compute == Compute::kExact), "")
        << kernels::isa_name(isa) << ", " << threads << " threads";
  }
};

TEST_P(FamilyTest, AgreesWithTheReferenceAloneChunkedAndBatched) {
  check(GetParam(), Compute::kExact, kernels::Isa::kScalar, 1);
  check(GetParam(), Compute::kExact, kernels::detect_isa(), 2);
}

TEST_P(FamilyTest, WithInt8ActivationsDoesNotDependOnChunksAndBatches) {
  check(GetParam(), Compute::kFast, kernels::Isa::kScalar, 2);
  check(GetParam(), Compute::kFast, kernels::detect_isa(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, testing::ValuesIn(fixture_folders()), test_name);

}  // namespace
}  // namespace weir::model
