// Hidden states that a pass gives: the head's product with them, computed here by hand from the
// file's weights, is the logits that the pass gives; in any batch they are the same to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/model.h"

namespace weir::model {
namespace {

constexpr int32_t kTokens = 45;

// What is wanted, counted from a pass's first row; ascending.
struct Part {
  Wanted::Kind kind = Wanted::kHidden;
  int32_t first = 0;
  int32_t rows = 0;
};

// What passes over one sequence give, by position.
class Keep final : public RowSink {
 public:
  Keep(Model& model, ThreadTeam& team)
      : model_(model),
        team_(team),
        cache_(*kv::KvCache::create(model.memory_needs(), kernels::FloatType::kF32, 2)),
        logits(kTokens),
        states(kTokens) {}

  // The tokens from `first` on; the rows wanted are counted from there.
  void pass(int32_t first, int32_t count, const std::vector<Part>& wanted) {
    first_ = first;
    builder_.clear();
    const int32_t pages[2] = {0, 1};
    builder_.add_slice({.first_position = first, .prompt_length = kTokens, .memory = {pages}});
    for (int32_t i = first; i < first + count; ++i) builder_.add_token((i * 7919 + 13) % 256);
    for (const Part& part : wanted) builder_.want(part.kind, part.first, part.rows);
    const Batch batch = builder_.batch();
    team_.run([&](int member) { model_.forward(batch, cache_, *this, team_, member); });
  }

  void on_rows(int32_t wanted, int32_t first, Rows rows, int) override {
    const Wanted& entry = builder_.wanted()[static_cast<size_t>(wanted)];
    const bool hidden = entry.kind == Wanted::kHidden;
    ASSERT_EQ(rows.width, hidden ? model_.spec().hidden_size : model_.spec().vocab_size);
    ASSERT_EQ(rows.count, entry.kind == Wanted::kScore ? 1 : entry.rows);
    for (int32_t i = 0; i < rows.count; ++i) {
      const auto position = static_cast<size_t>(first_ + entry.row_begin + first + i);
      (hidden ? states : logits)[position].assign(rows.row(i).begin(), rows.row(i).end());
    }
  }

 private:
  Model& model_;
  ThreadTeam& team_;
  kv::KvCache cache_;
  int32_t first_ = 0;
  BatchBuilder builder_;

 public:
  std::vector<std::vector<float>> logits, states;
};

float to_float(const Tensor& tensor, int64_t index) {
  if (tensor.type == DType::kF32) {
    float value = 0;
    std::memcpy(&value, tensor.data + index * 4, 4);
    return value;
  }
  EXPECT_EQ(tensor.type, DType::kBF16);
  uint16_t half = 0;
  std::memcpy(&half, tensor.data + index * 2, 2);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, 4);
  return value;
}

struct Case {
  const char* folder;
  double logit_scale = 1, softcap = 0;
};

class HiddenTest : public testing::TestWithParam<Case> {};

TEST_P(HiddenTest, TimesTheHeadIsTheLogits) {
  const auto card = card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/" +
                                                 std::string(GetParam().folder));
  ASSERT_TRUE(card) << card.error().message;
  ThreadTeam team(2);
  const auto model =
      Model::load(*card, {.compute = Compute::kExact, .rows_max = 64, .context_max = 64},
                  kernels::ops_for(kernels::detect_isa()), team);
  ASSERT_TRUE(model) << model.error().message;
  const card::StoredTensor* head = card->tensors->find("lm_head.weight");
  if (!head) head = card->tensors->find("model.embed_tokens.weight");
  ASSERT_NE(head, nullptr);

  Keep logits(**model, team), states(**model, team);
  logits.pass(0, kTokens, {{Wanted::kScore, 0, kTokens}});
  states.pass(0, kTokens, {{Wanted::kHidden, 0, kTokens}});
  const auto width = (*model)->spec().hidden_size;
  for (size_t position = 0; position < kTokens; ++position) {
    for (int64_t c = 0; c < (*model)->spec().vocab_size; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < width; ++k)
        sum += double{to_float(head->tensor, c * width + k)} *
               double{states.states[position][static_cast<size_t>(k)]};
      sum *= GetParam().logit_scale;
      if (GetParam().softcap > 0) sum = GetParam().softcap * std::tanh(sum / GetParam().softcap);
      ASSERT_NEAR(logits.logits[position][static_cast<size_t>(c)], sum, 2e-4)
          << "position " << position << " token " << c;
    }
  }
}

TEST_P(HiddenTest, DoesNotDependOnChunksOrOnWhatElseIsWanted) {
  const auto card = card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/" +
                                                 std::string(GetParam().folder));
  ASSERT_TRUE(card) << card.error().message;
  for (const Compute compute : {Compute::kExact, Compute::kFast}) {
    ThreadTeam team(2);
    const auto model = Model::load(*card, {.compute = compute, .rows_max = 64, .context_max = 64},
                                   kernels::ops_for(kernels::detect_isa()), team);
    ASSERT_TRUE(model) << model.error().message;
    Keep logits(**model, team), whole(**model, team), cut(**model, team);
    logits.pass(0, kTokens, {{Wanted::kScore, 0, kTokens}});
    whole.pass(0, kTokens, {{Wanted::kHidden, 0, kTokens}});
    cut.pass(0, 17,
             {{Wanted::kHidden, 0, 3},
              {Wanted::kNext, 3, 1},
              {Wanted::kHidden, 4, 4},
              {Wanted::kVerify, 8, 2},
              {Wanted::kHidden, 10, 7}});
    cut.pass(17, 1, {{Wanted::kHidden, 0, 1}});
    cut.pass(18, kTokens - 18,
             {{Wanted::kScore, 0, 1},
              {Wanted::kHidden, 1, kTokens - 20},
              {Wanted::kNext, kTokens - 19, 1}});
    for (const size_t sampled : {3, 8, 9, 18, kTokens - 1}) {
      EXPECT_TRUE(cut.states[sampled].empty());
      EXPECT_EQ(cut.logits[sampled], logits.logits[sampled]);
      cut.states[sampled] = whole.states[sampled];
    }
    EXPECT_EQ(cut.states, whole.states);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, HiddenTest,
                         testing::Values(Case{"llama"}, Case{"gemma2", 1, 4},
                                         Case{"granite", 1 / 1.7}, Case{"phi3"}, Case{"olmoe"}),
                         [](const auto& tested) { return std::string(tested.param.folder); });

}  // namespace
}  // namespace weir::model
