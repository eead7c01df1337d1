// States and drafts: for every number of drafts and of those that were right, what a step computes
// after them, and the states that it leaves, are to the bit those of plain decoding.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "kv/kv_cache.h"
#include "model/batch_builder.h"
#include "model/model.h"

namespace weir::model {
namespace {

constexpr int32_t kTape = 8;
constexpr int32_t kPrompt = 37, kTokens = kPrompt + 2 * kTape + 6;

class StateTape : public testing::TestWithParam<const char*> {
 protected:
  struct Keep final : RowSink {
    void on_rows(int32_t, int32_t, Rows rows, int) override {
      logits.assign(rows.data, rows.data + int64_t{rows.count} * rows.width);
    }
    std::vector<float> logits;
  };

  void SetUp() override {
    const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
    const auto card = card::ModelCard::open_folder(std::string(WEIR_SOURCE_DIR) +
                                                   "/tests/data/families/" + GetParam());
    ASSERT_TRUE(card.has_value()) << card.error().message;
    auto model = Model::load(*card,
                             {.rows_max = kTokens,
                              .draft_rows_max = kTape,
                              .tape_tokens = kTape,
                              .context_max = kTokens},
                             ops, team_);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_ = std::move(*model);
    for (int32_t i = 0; i < kTokens; ++i)
      tokens_.push_back((i * 37 + 11) % model_->spec().vocab_size);
    for (int32_t i = 0; i < kTokens / kernels::kPageTokens + 1; ++i) pages_.push_back(i);
    begin();
  }

  // The prompt, with nothing after it.
  void begin() {
    auto layout =
        kv::MemoryLayout::make(model_->memory_needs(), kernels::FloatType::kF32, kTape);
    ASSERT_TRUE(layout.has_value());
    const std::vector<int32_t> counts(layout->groups().size(),
                                      static_cast<int32_t>(pages_.size()));
    cache_ = std::make_unique<kv::KvCache>(*kv::KvCache::create(*std::move(layout), counts));
    slice({}, 0, kPrompt, 0);
  }

  // As BatchSlice has it.
  struct Place {
    int32_t first_position = 0;
    int32_t after = -1;
    int32_t drafts = 0;
    int32_t replays = 0;
  };

  // Logits of a slice of tokens from `first` on, of which the last are wrong drafts.
  std::vector<float> slice(const Place& place, int32_t first, int32_t count, int32_t wrong,
                           const Taken* before = nullptr) {
    BatchBuilder builder(kTokens, 1);
    builder.add_slice({.first_position = place.first_position,
                       .after = place.after,
                       .drafts = place.drafts,
                       .replays = place.replays,
                       .prompt_length = kPrompt,
                       .memory = {.tables = pages_.data()}});
    for (int32_t i = 0; i < count; ++i) {
      const int32_t token = tokens_[static_cast<size_t>(first + i)];
      builder.add_token(i < count - wrong ? token : (token + 1) % model_->spec().vocab_size);
    }
    builder.want(Wanted::kVerify, count - place.drafts - 1, place.drafts + 1);
    Keep keep;
    const Batch batch = builder.batch(before);
    team_.run([&](int member) { model_->forward(batch, *cache_, keep, team_, member); });
    return keep.logits;
  }

  // The states of all layers, without their tapes.
  std::vector<uint8_t> states() const {
    std::vector<uint8_t> all;
    const std::vector<kv::MemoryNeed> needs = model_->memory_needs();
    for (size_t i = 0; i < needs.size(); ++i)
      if (const auto* state = std::get_if<kv::StateNeed>(&needs[i])) {
        const uint8_t* const begin = cache_->state(static_cast<int32_t>(i), 0);
        all.insert(all.end(), begin, begin + state->bytes);
      }
    return all;
  }

  ThreadTeam team_{2};
  std::unique_ptr<Model> model_;
  std::unique_ptr<kv::KvCache> cache_;
  std::vector<int32_t> tokens_, pages_;
};

TEST_P(StateTape, GivesBackWhatPlainDecodingHas) {
  // Plain: one token after another, up to each place.
  std::vector<std::vector<float>> logits;
  std::vector<std::vector<uint8_t>> states_after;
  for (int32_t i = kPrompt; i < kPrompt + kTape + 3; ++i) {
    logits.push_back(slice({.first_position = i}, i, 1, 0));
    states_after.push_back(states());
  }
  ASSERT_FALSE(states_after[0].empty());
  ASSERT_NE(states_after[0], states_after[1]);
  const auto row = [&](const std::vector<float>& all, int32_t index) {
    const auto width = static_cast<size_t>(model_->spec().vocab_size);
    const auto begin = all.begin() + static_cast<ptrdiff_t>(width) * index;
    return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(width));
  };
  for (int32_t drafts = 0; drafts <= kTape; ++drafts)
    for (int32_t right = 0; right <= drafts; ++right)
      for (const bool late : {false, true}) {
        SCOPED_TRACE(std::to_string(drafts) + " drafts, " + std::to_string(right) + " right" +
                     (late ? ", known late" : ""));
        begin();
        const std::vector<float> verified =
            slice({.first_position = kPrompt, .drafts = drafts}, kPrompt, 1 + drafts,
                  drafts - right);
        for (int32_t i = 0; i <= right; ++i)
          ASSERT_EQ(row(verified, i), logits[static_cast<size_t>(i)]) << i;
        ASSERT_EQ(states(), states_after[0]);  // Whatever the drafts were.
        // The next step: the token after those that were right, and a draft of its own.
        const Taken taken = {.token = 0, .drafts = right};
        const int32_t next = kPrompt + 1 + right;
        const std::vector<float> after =
            slice({.first_position = late ? kPrompt + 1 : next,
                   .after = late ? 0 : -1,
                   .drafts = 1,
                   .replays = late ? 0 : right},
                  next, 2, 1, &taken);
        ASSERT_EQ(row(after, 0), logits[static_cast<size_t>(right + 1)]);
        ASSERT_EQ(states(), states_after[static_cast<size_t>(right + 1)]);
      }
}

INSTANTIATE_TEST_SUITE_P(Families, StateTape,
                         testing::Values("qwen3_next", "kimi_linear", "mamba2_biased",
                                         "mamba_biased", "falcon_mamba", "jamba_biased",
                                         "lfm2_biased", "minimax", "baichuan_m1",
                                         "mlxconv_qwen3_next"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           return std::string(tested.param);
                         });

}  // namespace
}  // namespace weir::model
