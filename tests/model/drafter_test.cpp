// Trained drafters beside the model that they were made for: what they propose, and how much of it
// the model accepts, are to the last one what an independent implementation has found (recorded
// with each of them).
#include "model/drafts/drafter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "card/default_model.h"
#include "model/decoder.h"
#include "model/draft_loop.h"

namespace weir::model {
namespace {

constexpr int32_t kEnds[] = {8187, 8185};  // The tiny model's <|im_end|>, <|endoftext|>.
constexpr int32_t kAnswerMax = 128, kTokensMax = 288;

std::string shared_folder(const std::string& name) {
  const char* models = std::getenv("WEIR_MODELS");
  return (models == nullptr ? std::string(WEIR_SOURCE_DIR "/../shared/models") : models) + name;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<int32_t> ints(JsonValue value) {
  std::vector<int32_t> out;
  for (const JsonValue one : JsonArray(value)) out.push_back(static_cast<int32_t>(int64_t(one)));
  return out;
}

// The prompts of the recorded counts, as the tiny model's template and tokenizer have them.
const std::vector<std::vector<int32_t>>& fresh_chats() {
  static const auto all = [] {
    std::ifstream file(WEIR_SOURCE_DIR "/tests/data/drafts/chats.txt");
    std::vector<std::vector<int32_t>> chats;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      auto& chat = chats.emplace_back();
      for (int32_t id = 0; words >> id;) chat.push_back(id);
    }
    return chats;
  }();
  return all;
}

// The tiny model, with the drafter of a folder or none.
class Pair {
 public:
  Pair(const std::string& folder, DraftOptions draft, Compute compute = Compute::kExact,
       int members = 2)
      : team_(members) {
    auto card = card::ModelCard::open(card::default_model());
    ModelOptions options = {.compute = compute, .rows_max = 1024};
    std::optional<card::ModelCard> files;
    if (!folder.empty()) {
      auto opened = card::ModelCard::open_folder(folder);
      if (!opened) throw std::runtime_error(opened.error().message);
      files.emplace(*std::move(opened));
      draft.card = &*files;
      options.draft = draft;
    }
    auto model = Decoder::bind(*card, options, ops_, members);
    if (!model) throw std::runtime_error(model.error().message);
    model_ = *std::move(model);
    model_->pack(team_, {});
  }

  Decoder& model() { return *model_; }
  DraftLoop loop(kernels::FloatType kv = kernels::FloatType::kF32) {
    return {*model_, ops_, team_, kTokensMax, kv};
  }

 private:
  const kernels::Ops& ops_ = kernels::ops_for(*kernels::choose_isa({}));
  ThreadTeam team_;
  std::unique_ptr<Decoder> model_;
};

// What the model answers to the first chats without drafts.
std::vector<std::vector<int32_t>> answers(Pair& pair, size_t chats,
                                          kernels::FloatType kv = kernels::FloatType::kF32) {
  DraftLoop loop = pair.loop(kv);
  loop.begin(std::span(fresh_chats()).first(chats));
  loop.generate(0, kAnswerMax, kEnds);
  std::vector<std::vector<int32_t>> out;
  for (const DraftLoop::Chat& chat : loop.chats())
    out.emplace_back(chat.tokens.begin() + chat.prompt_length, chat.tokens.end());
  return out;
}

// That with drafts, which the loop holds against the answers.
DraftLoop::Counts counts_of(Pair& pair, const std::vector<std::vector<int32_t>>& answers,
                            int32_t drafts, kernels::FloatType kv = kernels::FloatType::kF32) {
  DraftLoop loop = pair.loop(kv);
  loop.begin(std::span(fresh_chats()).first(answers.size()));
  for (size_t i = 0; i < answers.size(); ++i) loop.chats()[i].answer = answers[i];
  return loop.generate(drafts, kAnswerMax, kEnds);
}

class TrainedHead : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = shared_folder(std::string("/../drafters/") + GetParam());
    if (!std::filesystem::exists(folder_ + "/config.json"))
      GTEST_SKIP() << folder_ << " is not here";
    auto doc = JsonDoc::parse(read(folder_ + "/expected.json"));
    ASSERT_TRUE(doc.has_value());
    expected_.emplace(*std::move(doc));
  }
  JsonValue expected() const { return expected_->root(); }

  std::string folder_;
  std::optional<JsonDoc> expected_;
};

TEST_P(TrainedHead, ProposesWhatIsRecordedFromTheFeaturesThatAreRecorded) {
  Pair pair(folder_, {.drafts_max = 8});
  for (const JsonValue one : JsonArray(expected()["cases"])) {
    const std::vector<int32_t> prompt = ints(one["prompt_ids"]);
    const std::vector<int32_t> greedy = ints(one["target_greedy_ids"]);
    for (const JsonValue draft : JsonArray(one["drafts"])) {
      const auto context = static_cast<size_t>(int64_t(draft["context_tokens"]));
      std::vector<int32_t> text = prompt;
      text.insert(text.end(), greedy.begin(), greedy.end());
      text.resize(context);
      const std::vector<int32_t> want = ints(draft["draft_ids"]);
      DraftLoop loop = pair.loop();
      loop.begin({&text, 1});
      loop.step(static_cast<int32_t>(want.size()), 1024, kAnswerMax, kEnds);
      EXPECT_EQ(loop.chats()[0].tokens.back(), int64_t(draft["last_token"]));
      EXPECT_EQ(loop.chats()[0].drafts, want);
      const float* left = pair.model().left(static_cast<int32_t>(context) - 1);
      for (const JsonValue number :
           JsonArray(draft["first8_of_target_features_of_last_context_token"]))
        EXPECT_NEAR(*left++, double(number), 2e-4);
    }
  }
}

// Six chats.
TEST_P(TrainedHead, IsAcceptedToTheLastDraftAsRecorded) {
  Pair pair(folder_, {.drafts_max = 8});
  const JsonValue recorded = expected()["acceptance_on_fresh_chats"]["loop_check"];
  const DraftLoop::Counts found =
      counts_of(pair, answers(pair, static_cast<size_t>(int64_t(recorded["chats"]))),
                static_cast<int32_t>(int64_t(recorded["k"])));
  EXPECT_EQ(found.verifications, int64_t(recorded["verifications"]));
  EXPECT_EQ(found.accepted, int64_t(recorded["accepted"]));
}

// All 64, a minute for each head.
class CountsAtLength : public TrainedHead {};

TEST_P(CountsAtLength, AreThoseRecorded) {
  Pair pair(folder_, {.drafts_max = 8});
  const auto all = answers(pair, fresh_chats().size());
  size_t tokens = 0;
  for (const auto& answer : all) tokens += answer.size();
  const JsonValue recorded = expected()["acceptance_on_fresh_chats"];
  EXPECT_EQ(tokens, size_t(int64_t(recorded["greedy_tokens"])));
  for (const int32_t k : {2, 4, 7, 8}) {
    JsonObject counts;
    if (recorded["k" + std::to_string(k)].get(counts) != simdjson::SUCCESS) continue;
    const DraftLoop::Counts found = counts_of(pair, all, k);
    EXPECT_EQ(found.verifications, int64_t(counts["verifications"])) << "k = " << k;
    // It is recorded to three places.
    EXPECT_NEAR(found.mean(), double(counts["accepted_per_verification"]), 5e-4) << "k = " << k;
  }
}

// With int8 activations and 16-bit keys near-ties flip and texts differ: about the same is accepted.
// Drafters of two million parameters lose more in four bits than larger ones do (docs/drafters.md).
TEST_P(CountsAtLength, AreNearInFastArithmeticAndInFourBits) {
  Pair pair(folder_, {.drafts_max = 8}, Compute::kFast);
  const auto all = answers(pair, fresh_chats().size(), kernels::FloatType::kF16);
  const JsonValue recorded = expected()["acceptance_on_fresh_chats"];
  const bool block = recorded["k4"].error() != simdjson::SUCCESS;
  const int32_t k = block ? 7 : 4;
  const double mean = double(recorded["k" + std::to_string(k)]["accepted_per_verification"]);
  EXPECT_NEAR(counts_of(pair, all, k, kernels::FloatType::kF16).mean(), mean, 0.05);
  Pair small(folder_, {.drafts_max = 8, .quantise_bits = 4, .vocabulary = 4096}, Compute::kFast);
  const double cheap = counts_of(small, all, k, kernels::FloatType::kF16).mean();
  EXPECT_GT(cheap, 0.7 * mean);
  RecordProperty("accepted_in_four_bits", std::to_string(cheap));
  std::printf("accepted a verification: recorded %.3f, in four bits %.3f\n", mean, cheap);
}

INSTANTIATE_TEST_SUITE_P(Drafters, TrainedHead,
                         testing::Values("weir-tiny-eagle3", "weir-tiny-mtp", "weir-tiny-dflash"),
                         [](const auto& head) {
                           std::string name = head.param;
                           std::erase(name, '-');
                           return name;
                         });

INSTANTIATE_TEST_SUITE_P(Drafters, CountsAtLength,
                         testing::Values("weir-tiny-eagle3", "weir-tiny-mtp", "weir-tiny-dflash"),
                         [](const auto& head) {
                           std::string name = head.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(DraftModelAtLength, IsAcceptedAsOftenAsRecorded) {
  const std::string folder = shared_folder("/weir-tiny-draft");
  if (!std::filesystem::exists(folder + "/config.json")) GTEST_SKIP() << folder << " is not here";
  Pair pair(folder, {.drafts_max = 8});
  const auto all = answers(pair, fresh_chats().size());
  EXPECT_NEAR(counts_of(pair, all, 2).mean(), 1.01, 0.02);
  EXPECT_NEAR(counts_of(pair, all, 4).mean(), 1.39, 0.02);
  EXPECT_NEAR(counts_of(pair, all, 8).mean(), 1.63, 0.02);
}

// Hostile or wrong: refused with a sentence that says what was expected.
class RefusedDrafter : public testing::Test {
 protected:
  // The error of a drafter with this config.json and the tensors of an EAGLE-3 head.
  static std::string refusal(const std::string& config, const std::string& file) {
    auto files = card::ModelCard::open(card::ModelFiles::embedded(
        "head", {{"config.json", std::as_bytes(std::span(config))},
                 {"model.safetensors", std::as_bytes(std::span(file))}}));
    if (!files) return files.error().message;
    auto card = card::ModelCard::open(card::default_model());
    auto model = Decoder::bind(*card, {.rows_max = 8, .draft = DraftOptions{.card = &*files}},
                               kernels::ops_for(kernels::Isa::kScalar), 1);
    return model ? std::string() : model.error().message;
  }
  static std::string config(const std::string& more) {
    return R"({"architectures":["LlamaForCausalLMEagle3"],"num_hidden_layers":1,)"
           R"("intermediate_size":64,"hidden_size":256,"num_attention_heads":4,)"
           R"("num_key_value_heads":2,"head_dim":64,"max_position_embeddings":256,)" +
           more + "}";
  }
  static std::string empty_file() {
    const std::string header = "{}      ";
    const uint64_t length = header.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file + header;
  }
};

TEST_F(RefusedDrafter, SaysWhatIsWrong) {
  const auto refused = [](const std::string& more) { return refusal(config(more), empty_file()); };
  EXPECT_NE(refused(R"("vocab_size":500)").find("expected 8192, which the model has, found 500"),
            std::string::npos);
  EXPECT_NE(refused(R"("vocab_size":8192,"eagle_aux_hidden_state_layer_ids":[1,2,9])")
                .find("expected layers from 0 to 8 of the model, found 9"),
            std::string::npos);
  EXPECT_NE(refused(R"("vocab_size":8192,"window_shape":"round")").find("window_shape"),
            std::string::npos);
  EXPECT_NE(refused(R"("vocab_size":8192)").find("fc.weight"), std::string::npos);
}

TEST(DraftModule, IsRefusedWhereThereIsNone) {
  auto card = card::ModelCard::open(card::default_model());
  auto model = Decoder::bind(*card, {.rows_max = 8, .draft = DraftOptions{}},
                             kernels::ops_for(kernels::Isa::kScalar), 1);
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("expected a module that drafts (MTP), found none"),
            std::string::npos)
      << model.error().message;
}

}  // namespace
}  // namespace weir::model
