// Trained drafters beside the model that they were made for: what they propose, and how much of it
// the model accepts, are to the last one what an independent implementation has found (recorded with
// each of them).
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
std::vector<std::vector<int32_t>> fresh_chats() {
  std::ifstream file(WEIR_SOURCE_DIR "/tests/data/drafts/chats.txt");
  std::vector<std::vector<int32_t>> chats;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    auto& chat = chats.emplace_back();
    for (int32_t id = 0; words >> id;) chat.push_back(id);
  }
  return chats;
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

// What the model answers without drafts; 7,357 tokens.
const std::vector<std::vector<int32_t>>& answers() {
  static const auto all = [] {
    Pair pair("", {});
    DraftLoop loop = pair.loop();
    loop.begin(fresh_chats());
    loop.generate(0, kAnswerMax, kEnds);
    std::vector<std::vector<int32_t>> out;
    for (const DraftLoop::Chat& chat : loop.chats())
      out.emplace_back(chat.tokens.begin() + chat.prompt_length, chat.tokens.end());
    return out;
  }();
  return all;
}

DraftLoop::Counts counts_of(Pair& pair, int32_t drafts,
                            kernels::FloatType kv = kernels::FloatType::kF32) {
  DraftLoop loop = pair.loop(kv);
  loop.begin(fresh_chats());
  for (size_t i = 0; i < loop.chats().size(); ++i) loop.chats()[i].answer = answers()[i];
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

TEST_P(TrainedHead, IsAcceptedToTheLastDraftAsRecorded) {
  Pair pair(folder_, {.drafts_max = 8});
  const JsonValue recorded = expected()["acceptance_on_fresh_chats"];
  for (const int32_t k : {2, 4, 7, 8}) {
    JsonObject counts;
    if (recorded["k" + std::to_string(k)].get(counts) != simdjson::SUCCESS) continue;
    const int64_t verifications = int64_t(counts["verifications"]);
    const double mean = double(counts["accepted_per_verification"]);
    const DraftLoop::Counts found = counts_of(pair, k);
    EXPECT_EQ(found.verifications, verifications) << "k = " << k;
    EXPECT_NEAR(found.mean(), mean, 5e-4) << "k = " << k;  // It is recorded to three places.
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, TrainedHead,
                         testing::Values("weir-tiny-eagle3", "weir-tiny-mtp", "weir-tiny-dflash"),
                         [](const auto& head) {
                           std::string name = head.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(DraftModel, IsAcceptedAsOftenAsRecorded) {
  const std::string folder = shared_folder("/weir-tiny-draft");
  if (!std::filesystem::exists(folder + "/config.json")) GTEST_SKIP() << folder << " is not here";
  Pair pair(folder, {.drafts_max = 8});
  EXPECT_NEAR(counts_of(pair, 2).mean(), 1.01, 0.02);
  EXPECT_NEAR(counts_of(pair, 4).mean(), 1.39, 0.02);
  EXPECT_NEAR(counts_of(pair, 8).mean(), 1.63, 0.02);
}

TEST(Answers, AreThoseOfTheRecordedCounts) {
  size_t tokens = 0;
  for (const auto& answer : answers()) tokens += answer.size();
  EXPECT_EQ(tokens, 7357u);
}

}  // namespace
}  // namespace weir::model
