// Layers with states: a token's logits are the same bits however its sequence was cut, beside
// whatever others, and whatever the slot of its state held before.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/session.h"

namespace weir::model {
namespace {

using Logits = std::vector<std::vector<float>>;  // By token.

constexpr int32_t kTokens = 40;
constexpr int32_t kPrompt = 17;

struct Tested {
  const char* name;
  const char* fixture;
  Compute compute;
};

class StateLayers : public testing::TestWithParam<Tested> {
 protected:
  void SetUp() override {
    const auto card = card::ModelCard::open_folder(
        std::string(WEIR_SOURCE_DIR "/tests/data/families/") + GetParam().fixture);
    ASSERT_TRUE(card) << card.error().message;
    auto model =
        Model::load(*card, {.compute = GetParam().compute, .rows_max = 128, .context_max = 64},
                    kernels::ops_for(kernels::detect_isa()), team_);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    session_.emplace(*Session::create(*model_, team_, {.sequences = 2, .tokens_max = 64}));
  }

  static std::vector<int32_t> tokens_of(uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> tokens(kTokens);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 256);
    return tokens;
  }
  // `beside`: another sequence goes along.
  Logits run(const std::vector<int32_t>& tokens, size_t chunk, bool beside = false) {
    Logits logits(kTokens);
    const std::vector<int32_t> others = tokens_of(99);
    session_->begin(0, kPrompt);
    session_->begin(1, kTokens);
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t count = std::min(chunk, tokens.size() - at);
      std::vector<Session::Slice> slices = {{0, std::span(tokens).subspan(at, count), true}};
      if (beside) slices.insert(slices.begin(), {1, std::span(others).subspan(at, count), true});
      session_->forward(slices, [&](size_t slice, size_t token, std::span<float> row) {
        if (slices[slice].sequence == 0) logits[at + token].assign(row.begin(), row.end());
      });
    }
    return logits;
  }

  ThreadTeam team_{2};
  std::unique_ptr<Model> model_;
  std::optional<Session> session_;
};

TEST_P(StateLayers, IsTheSameHoweverTheSequenceIsCut) {
  const std::vector<int32_t> tokens = tokens_of(1);
  const Logits alone = run(tokens, 1);
  ASSERT_EQ(alone.back().size(), 256u);
  EXPECT_NE(alone[0], alone[1]);
  // Chunks of 7 and 40 go from the prompt on to what comes after it.
  for (const size_t chunk : {2, 7, 17, 40})
    for (const bool beside : {false, true})
      EXPECT_EQ(run(tokens, chunk, beside), alone) << chunk << (beside ? " beside another" : "");
}

TEST_P(StateLayers, BeginsWithZerosWhateverTheSlotHolds) {
  const std::vector<int32_t> tokens = tokens_of(1);
  const Logits first = run(tokens, 8);
  const Logits other = run(tokens_of(2), 8);
  EXPECT_NE(other, first);
  EXPECT_EQ(run(tokens, 8), first);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, StateLayers,
    testing::Values(Tested{"GatedDeltaFast", "mlxconv_qwen3_next", Compute::kFast},
                    Tested{"GatedDeltaExact", "mlxconv_qwen3_next", Compute::kExact},
                    Tested{"KeyDecaysFast", "kimi_linear", Compute::kFast},
                    Tested{"KeyDecaysExact", "kimi_linear", Compute::kExact},
                    Tested{"LightningFast", "minimax", Compute::kFast},
                    Tested{"LightningExact", "minimax", Compute::kExact},
                    Tested{"ShortConvFast", "mlxconv_lfm2_moe", Compute::kFast},
                    Tested{"ShortConvExact", "mlxconv_lfm2_moe", Compute::kExact},
                    Tested{"Mamba1Fast", "mamba_biased", Compute::kFast},
                    Tested{"Mamba1Exact", "mamba_biased", Compute::kExact},
                    Tested{"Mamba1NormsFast", "jamba_biased", Compute::kFast},
                    Tested{"Mamba1NormsExact", "jamba_biased", Compute::kExact},
                    Tested{"Mamba1OddChannelsFast", "falcon_mamba", Compute::kFast},
                    Tested{"Mamba1OddChannelsExact", "falcon_mamba", Compute::kExact},
                    Tested{"Mamba2Fast", "mamba2_biased", Compute::kFast},
                    Tested{"Mamba2Exact", "mamba2_biased", Compute::kExact}),
    [](const testing::TestParamInfo<Tested>& tested) { return tested.param.name; });

}  // namespace
}  // namespace weir::model
