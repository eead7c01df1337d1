// Binding a checkpoint to a spec: every tensor bound or named, with the message that says which
// tensor, what was expected and what was found.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/model.h"
#include "model/session.h"

namespace weir::model {
namespace {

// The files of a fixture in memory, to be damaged.
class WeightsTest : public testing::Test {
 protected:
  void open(const std::string& fixture) {
    const std::string folder = WEIR_SOURCE_DIR "/tests/data/families/" + fixture;
    config_ = *read_file(folder + "/config.json", 1 << 20);
    weights_ = *read_file(folder + "/model.safetensors", 1 << 26);
  }
  // Replaces text in the header; of equal length, so that offsets stay.
  void edit(const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    const size_t at = weights_.find(from);
    ASSERT_NE(at, weights_.npos) << from;
    weights_.replace(at, from.size(), to);
  }
  void edit_config(const std::string& from, const std::string& to) {
    const size_t at = config_.find(from);
    ASSERT_NE(at, config_.npos) << from;
    config_.replace(at, from.size(), to);
  }
  Result<std::unique_ptr<Model>> load(ThreadTeam& team,
                                      ModelOptions options = {.rows_max = 8, .context_max = 64}) {
    WEIR_ASSIGN(const card::ModelCard card, open_card());
    return Model::load(card, options, kernels::ops_for(kernels::Isa::kScalar), team);
  }
  Result<card::ModelCard> open_card() const {
    return card::ModelCard::open(card::ModelFiles::embedded(
        "m", {{"config.json", std::as_bytes(std::span(config_))},
              {"model.safetensors", std::as_bytes(std::span(weights_))}}));
  }
  std::string error() {
    ThreadTeam team(1);
    const auto model = load(team);
    return model ? "" : model.error().message;
  }

  std::string config_, weights_;
};

TEST_F(WeightsTest, NamesAMissingTensor) {
  open("llama");
  edit("\"model.norm.weight\"", "\"model.nurm.weight\"");
  EXPECT_EQ(error(),
            "m/model.safetensors: tensor 'model.norm.weight': expected F32, F16 or BF16 [64], "
            "found no such tensor");
}

// The first tensor is missing. Binding on would take a list of experts for each of 2048 layers: for
// as long as that takes memory is the measure, here of what malloc gave.
TEST_F(WeightsTest, StopsAtTheFirstError) {
  config_ = R"({"architectures":["MixtralForCausalLM"],"vocab_size":256,"hidden_size":64,)"
            R"("num_hidden_layers":2048,"num_attention_heads":4,"num_key_value_heads":2,)"
            R"("intermediate_size":64,"max_position_embeddings":64,"num_local_experts":4096})";
  weights_ = std::string("\2\0\0\0\0\0\0\0{}", 10);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_NE(error().find("embed_tokens"), std::string::npos) << error();
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256 << 10) << "KiB";
}

TEST_F(WeightsTest, NamesATensorThatNobodyWants) {
  open("llama");
  edit("self_attn.rotary_emb.inv_freq", "self_attn.rotary_emb.inv_frex");
  const std::string message = error();
  EXPECT_NE(
      message.find(
          "rotary_emb.inv_frex': expected only tensors that LlamaForCausalLM has, found F32 [8]"),
      std::string::npos)
      << message;
}

TEST_F(WeightsTest, NamesAWrongShape) {
  open("llama");
  edit_config("\"intermediate_size\": 80", "\"intermediate_size\": 96");
  EXPECT_EQ(error(),
            "m/model.safetensors: tensor 'model.layers.0.mlp.gate_proj.weight': expected F32, F16 "
            "or BF16 [96, 64], "
            "found F32 [80, 64]");
}

TEST_F(WeightsTest, NamesAWrongType) {
  open("llama");
  edit("\"F32\"", "\"I32\"");  // The first tensor of the header.
  const std::string message = error();
  EXPECT_NE(message.find(", found I32 ["), std::string::npos) << message;
}

TEST_F(WeightsTest, NamesWrongQuantisation) {
  open("mlx_llama_q3_g64");
  edit_config("\"bits\": 3", "\"bits\": 4");
  const std::string message = error();
  EXPECT_NE(message.find("expected U32 [256, 16] (4 bits in groups of 64), found U32 [256, 12]"),
            std::string::npos)
      << message;
}

TEST_F(WeightsTest, AsksForQuantisationInTheConfig) {
  open("mlx_llama_q3_g64");
  for (const char* key : {"\"quantization\"", "\"quantization_config\""})
    edit_config(key, "\"license\"");
  const std::string message = error();
  EXPECT_NE(message.find("config.json: expected 'quantization' or 'quantization_config', because "
                         "m/model.safetensors has a tensor"),
            std::string::npos)
      << message;
}

TEST_F(WeightsTest, RefusesACutFile) {
  open("llama");
  weights_.resize(weights_.size() - 1);
  EXPECT_NE(error().find("the file is cut short"), std::string::npos) << error();
}

TEST_F(WeightsTest, TiesTheHeadUnlessStored) {
  open("gemma2");  // config.json does not say; the file has no lm_head.
  EXPECT_EQ(error(), "");
  edit_config("\"vocab_size\"", "\"tie_word_embeddings\": false, \"vocab_size\"");
  EXPECT_NE(error().find("tensor 'lm_head.weight': expected"), std::string::npos) << error();
}

// Only where a weight is used from its file does it matter what becomes of that.
TEST(MappedFiles, AreThoseThatWeightsAreUsedFrom) {
  ThreadTeam team(1);
  const auto mapped_of = [&](const std::string& family) {
    const auto card =
        card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/" + family);
    EXPECT_TRUE(card) << card.error().message;
    const auto model =
        Model::load(*card, {.rows_max = 8}, kernels::ops_for(kernels::Isa::kScalar), team);
    EXPECT_TRUE(model) << model.error().message;
    EXPECT_TRUE((*model)->files().check());
    std::vector<std::string> names;
    for (const FileView* file : (*model)->files().in_place)
      names.push_back(file->name().substr(file->name().rfind('/') + 1));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(mapped_of("llama"), Names({"model.safetensors"}));
  EXPECT_EQ(mapped_of("llama_llama3rope"),
            Names({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(mapped_of("mlx_llama_q3_g64"), Names());
}

TEST_F(WeightsTest, CountsBytesAndMultiplyAdds) {
  open("mlx_qwen3_moe_q4_g64");
  ThreadTeam team(2);
  int64_t done = 0, total = 0;
  const auto card = open_card();
  ASSERT_TRUE(card) << card.error().message;
  const auto model = Model::load(*card, {.rows_max = 8}, kernels::ops_for(kernels::Isa::kScalar),
                                 team, [&](int64_t d, int64_t t) {
                                   EXPECT_GE(d, done);
                                   done = d, total = t;
                                 });
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(done, total);
  // Words and scales of every quantised module: the file's tensors less its norms.
  const auto parsed = (*model)->memory();
  EXPECT_GT(parsed.packed_weights, total);
  EXPECT_EQ(parsed.mapped_weights, 0);
  // Two layers of attention (128 x 128 + 2 of 64 x 128 + 128 x 128), router, two of eight experts,
  // and the head.
  const int64_t attention = 128 * 128 * 2 + 2 * 64 * 128, experts = 8 * 128 + 2 * 3 * 64 * 128;
  EXPECT_EQ((*model)->token_work().macs, 2 * (attention + experts) + 256 * 128);
  // All experts; norms of the layers' inputs and of queries and keys; embedding, head, last norm.
  const int64_t stored = 8 * 128 + 8 * 3 * 64 * 128, norms = 2 * 128 + 2 * 32;
  EXPECT_EQ(parsed.parameters, 2 * (attention + stored + norms) + 2 * 256 * 128 + 128);
  EXPECT_EQ((*model)->memory_needs().size(), 2u);
  EXPECT_EQ((*model)->context_max(), 256);
}

// What the engine relies on.
class CountingSink final : public RowSink {
 public:
  void on_rows(int32_t wanted, int32_t first, Rows given, int) override {
    rows += (given.count << 8 * wanted) + first;
    if (given.width == 256) ++full;
  }
  void while_beginning() override { ++begun; }
  void while_ending() override { ++planned; }
  std::atomic<int> rows{0}, full{0};
  int begun = 0, planned = 0;
};

TEST_F(WeightsTest, TakesSampledTokensFromTheStepBefore) {
  open("llama");
  ThreadTeam team(2);
  const auto model = load(team);
  ASSERT_TRUE(model) << model.error().message;
  auto cache = kv::KvCache::create((*model)->memory_needs(), kernels::FloatType::kF32, 2);
  ASSERT_TRUE(cache) << cache.error().message;
  const std::vector<Taken> taken = {{.token = 9}, {.token = 17}};
  const std::vector<int32_t> pages = {1};
  const auto logits_of = [&](std::vector<int32_t> tokens) {
    struct Keep final : RowSink {
      void on_rows(int32_t, int32_t, Rows rows, int) override {
        logits.assign(rows.row(0).begin(), rows.row(0).end());
      }
      std::vector<float> logits;
    } keep;
    BatchBuilder builder;
    builder.add_slice({.memory = {pages.data()}});
    builder.add_tokens(tokens);
    builder.want_next();
    const Batch batch = builder.batch(taken.data());
    team.run([&](int member) { (*model)->forward(batch, *cache, keep, team, member); });
    return keep.logits;
  };
  const std::vector<float> plain = logits_of({5, 17, 9});
  EXPECT_EQ(plain.size(), 256u);
  EXPECT_EQ(logits_of({5, -2, -1}), plain);
  EXPECT_NE(logits_of({5, -1, -2}), plain);
}

TEST_F(WeightsTest, GivesEachEntryAtOnceAndAsksOnceToPlan) {
  open("llama");
  ThreadTeam team(2);
  const auto model = load(team);
  ASSERT_TRUE(model) << model.error().message;
  auto cache = kv::KvCache::create((*model)->memory_needs(), kernels::FloatType::kF16, 2);
  ASSERT_TRUE(cache);
  const std::vector<int32_t> first = {0}, second = {1};
  const auto build = [&](bool wanted) {
    BatchBuilder builder;
    builder.add_slice({.memory = {first.data()}});
    builder.add_tokens(std::array{1, 2, 3});
    if (wanted) builder.want(Wanted::kVerify, 0, 3);
    builder.add_slice({.memory = {second.data()}});
    builder.add_tokens(std::array{4, 5});
    if (wanted) builder.want_next();
    return builder;
  };
  const BatchBuilder all = build(true), none = build(false);
  CountingSink sink;
  team.run([&](int member) {
    // Twice within one run: each pass leaves the team as it found it.
    for (int i = 0; i < 2; ++i) (*model)->forward(all.batch(), *cache, sink, team, member);
    (*model)->forward(none.batch(), *cache, sink, team, member);
  });
  EXPECT_EQ(sink.rows, 2 * (3 + (1 << 8)));
  EXPECT_EQ(sink.full, 4);
  EXPECT_EQ(sink.planned, 3);
  EXPECT_EQ(sink.begun, 3);
}

}  // namespace
}  // namespace weir::model
