// What a drafter with weights is told of a step's sequences, and which of them it can draft for.
#include "exec/cpu_drafter.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/model.h"

namespace weir::exec {
namespace {

constexpr int kMembers = 2;
constexpr int32_t kPages = 4;  // Of each sequence.

// Chooses nothing: what was wanted is given by the test.
class NoSink final : public model::RowSink {
  void on_rows(int32_t, int32_t, model::Rows, int) override {}
};

// Sequence 0 has text, sequence 1 text or vectors.
class CpuDrafterOfTwo : public testing::Test {
 protected:
  void SetUp() override {
    auto card = card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/drafts/mtp_glm");
    ASSERT_TRUE(card.has_value()) << card.error().message;
    auto model = model::Model::load(*card,
                                    {.rows_max = 64,
                                     .draft_rows_max = 16,
                                     .context_max = 128,
                                     .draft = model::DraftOptions{.drafts_max = 3}},
                                    ops_, team_);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_ = *std::move(model);
    auto cache =
        kv::KvCache::create(model_->memory_needs(), kernels::FloatType::kF32, 2 * kPages, {2});
    ASSERT_TRUE(cache.has_value()) << cache.error().message;
    cache_.emplace(*std::move(cache));
    drafter_.emplace(*model_->drafter(), *cache_, team_, 64);
    for (int32_t i = 0; i < 2 * kPages; ++i) pages_[static_cast<size_t>(i)] = i;
  }

  kv::MemoryView memory(int32_t sequence) const {
    return {.tables = pages_.data() + sequence * kPages};
  }

  // A step of `rows` rows of each sequence, after which it is told to keep up so.
  void step(int32_t rows, bool vectors, KeepUp keep_up) {
    model::BatchBuilder builder(64, 2);
    const std::vector<float> numbers(static_cast<size_t>(rows * model_->spec().hidden_size), 0.5f);
    StepResults results(64);
    for (int32_t sequence = 0; sequence < 2; ++sequence) {
      builder.add_slice({.first_position = computed_,
                         .prompt_length = 1000,
                         .memory = memory(sequence),
                         .sequence = sequence});
      if (sequence == 1 && vectors)
        builder.add_vectors({.rows = rows, .vectors = numbers.data()});
      else
        for (int32_t i = 0; i < rows; ++i) builder.add_token((7 * i + sequence) % 40);
      builder.want_next();
      results.taken[static_cast<size_t>(builder.rows() - 1)] = {.token = 3};
    }
    const model::Batch batch = builder.batch();
    NoSink sink;
    team_.run([&](int member) { model_->forward(batch, *cache_, sink, team_, member); });
    computed_ += rows;
    drafter_->follow({.batch = batch, .jobs = {}, .results = results}, keep_up);
  }

  // How many drafts each sequence gets.
  std::array<int32_t, 2> drafts() {
    std::array<std::array<int32_t, 3>, 2> tokens{};
    std::array<std::array<float, 3>, 2> probabilities{};
    std::vector<DraftTask> tasks;
    for (int32_t sequence = 0; sequence < 2; ++sequence)
      tasks.push_back({.sequence = sequence,
                       .memory = memory(sequence),
                       .position = computed_ + 1,
                       .tokens = tokens[static_cast<size_t>(sequence)],
                       .probabilities = probabilities[static_cast<size_t>(sequence)]});
    drafter_->draft(tasks);
    return {tasks[0].count, tasks[1].count};
  }

  const kernels::Ops& ops_ = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team_{kMembers};
  std::unique_ptr<model::Model> model_;
  std::optional<kv::KvCache> cache_;
  std::optional<CpuDrafter> drafter_;
  std::array<int32_t, 2 * kPages> pages_{};
  int32_t computed_ = 0;
};

using Counts = std::array<int32_t, 2>;

TEST_F(CpuDrafterOfTwo, DraftsAfterStepsOfWhichItHasGuesses) {
  step(8, /*vectors=*/false, KeepUp::kGuesses);
  EXPECT_EQ(drafts(), (Counts{3, 3}));
  step(1, /*vectors=*/false, KeepUp::kRows);
  EXPECT_EQ(drafts(), (Counts{0, 0}));
  step(1, /*vectors=*/false, KeepUp::kGuesses);
  EXPECT_EQ(drafts(), (Counts{3, 3}));
  step(1, /*vectors=*/false, KeepUp::kNot);
  EXPECT_EQ(drafts(), (Counts{0, 0}));
  step(1, /*vectors=*/false, KeepUp::kGuesses);  // It begins anew.
  EXPECT_EQ(drafts(), (Counts{3, 3}));
}

// Rows of vectors have no tokens to keep up with: their sequence begins anew, others go on.
TEST_F(CpuDrafterOfTwo, ForgetsOnlyTheSequenceWithRowsOfVectors) {
  step(8, /*vectors=*/false, KeepUp::kGuesses);
  step(4, /*vectors=*/true, KeepUp::kGuesses);
  EXPECT_EQ(drafts(), (Counts{3, 0}));
  step(1, /*vectors=*/false, KeepUp::kGuesses);
  EXPECT_EQ(drafts(), (Counts{3, 3}));
}

}  // namespace
}  // namespace weir::exec
