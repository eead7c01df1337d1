#include "model/checkpoint_quantiser.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "model/session.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;

class CheckpointQuantiserTest : public testing::Test {
 protected:
  CheckpointQuantiserTest() {
    std::string name = (fs::temp_directory_path() / "weir-quantiser-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    out_ = name;
  }
  ~CheckpointQuantiserTest() override { fs::remove_all(out_); }

  static std::string family(const std::string& name) {
    return std::string(WEIR_SOURCE_DIR "/tests/data/families/") + name;
  }
  std::unique_ptr<Decoder> bind(const card::ModelCard& card, int32_t bits = 0) {
    auto model = Decoder::bind(
        card,
        {.compute = Compute::kExact, .rows_max = 64, .context_max = 64, .quantise_bits = bits},
        kernels::ops_for(kernels::Isa::kScalar), 1);
    EXPECT_TRUE(model) << model.error().message;
    return *std::move(model);
  }
  Result<void> quantise(const std::string& folder, const QuantiseRules& rules) {
    WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(folder));
    return quantise_checkpoint(card, bind(card)->modules(), rules, out_.string(), team_);
  }
  // Of a few tokens.
  std::vector<float> logits(Model& model) {
    model.pack(team_, {});
    EXPECT_TRUE(model.files().check());
    auto session = Session::create(
        model, team_, {.sequences = 1, .tokens_max = 32, .kv_format = kernels::FloatType::kF32});
    EXPECT_TRUE(session) << session.error().message;
    session->begin(0, 8);
    const std::vector<int32_t> ids = {1, 5, 9, 13, 17, 21, 25, 29};
    std::vector<float> out;
    const std::array slices = {Session::Slice{0, ids, true}};
    session->forward(slices, [&](size_t, size_t, std::span<float> row) {
      out.insert(out.end(), row.begin(), row.end());
    });
    return out;
  }

  ThreadTeam team_{1};
  fs::path out_;
};

TEST_F(CheckpointQuantiserTest, WritesWhatQuantisingInMemoryHolds) {
  for (const char* name : {"llama", "qwen2_moe", "gpt2"}) {
    const auto rules = QuantiseRules::make({.bits = 4, .group = 64}, {});
    const auto source = card::ModelCard::open_folder(family(name));
    ASSERT_TRUE(source) << source.error().message;
    // Of rows that are no multiple of 64 the file has floats.
    ASSERT_TRUE(quantise(family(name), *rules));
    const auto card = card::ModelCard::open_folder(out_.string());
    ASSERT_TRUE(card) << card.error().message;
    const auto written = bind(*card), held = bind(*source, 4);
    EXPECT_NE(written->memory().formats.find("4-bit g64"), std::string::npos);
    if (written->memory().formats == held->memory().formats) {
      EXPECT_EQ(logits(*written), logits(*held)) << name;
    }
  }
}

TEST_F(CheckpointQuantiserTest, TakesTheFirstRuleThatMatches) {
  const auto rules = QuantiseRules::make(
      {.bits = 4, .group = 32}, {"layers.0.*down_proj=skip", "down_proj$=8:64", "lm_head=6:32"});
  ASSERT_TRUE(rules) << rules.error().message;
  const auto of = [&](const std::string& path) {
    BoundModule module;
    module.path = path;
    return rules->of(module);
  };
  EXPECT_EQ(of("model.layers.0.mlp.down_proj"), std::nullopt);
  EXPECT_EQ(of("model.layers.1.mlp.down_proj"), (QuantisedAs{8, 64}));
  EXPECT_EQ(of("lm_head"), (QuantisedAs{6, 32}));
  EXPECT_EQ(of("model.layers.1.mlp.gate"), (QuantisedAs{8, 64}));
  EXPECT_EQ(of("model.layers.1.mlp.gate_proj"), (QuantisedAs{4, 32}));
  for (const char* wrong : {"a=7:64", "a=4:48", "a=4", "a", "a=4:64x", "(=4:64"})
    EXPECT_FALSE(QuantiseRules::make({}, {wrong})) << wrong;
}

TEST_F(CheckpointQuantiserTest, GoesOnWithWhatIsMissing) {
  const auto rules = QuantiseRules::make({.bits = 4, .group = 32}, {});
  ASSERT_TRUE(quantise(family("llama"), *rules));
  const fs::path file = out_ / "model.safetensors";
  const auto first = fs::last_write_time(file);
  fs::remove(out_ / "config.json");
  ASSERT_TRUE(quantise(family("llama"), *rules));
  EXPECT_EQ(fs::last_write_time(file), first);
  EXPECT_TRUE(fs::exists(out_ / "config.json"));
  // Other numbers are another file.
  ASSERT_TRUE(quantise(family("llama"), *QuantiseRules::make({.bits = 8, .group = 32}, {})));
  EXPECT_NE(fs::last_write_time(file), first);
}

TEST_F(CheckpointQuantiserTest, QuantisesWhatIsQuantised) {
  ASSERT_TRUE(
      quantise(family("mlx_llama_q3_g64"), *QuantiseRules::make({.bits = 8, .group = 64}, {})));
  const auto card = card::ModelCard::open_folder(out_.string());
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(bind(*card)->memory().formats, "8-bit g64");
}

}  // namespace
}  // namespace weir::model
