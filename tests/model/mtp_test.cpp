// Modules that predict further tokens, beside models of random weights: features, drafts and what
// is chained are those of an implementation in numpy (tests/data/drafts/make_mtp.py). A wrong
// drafter changes no answer, so nothing else would find it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "model/decoder.h"
#include "model/draft_loop.h"

namespace weir::model {
namespace {

std::vector<int32_t> ints(JsonValue value) {
  std::vector<int32_t> out;
  for (const JsonValue one : JsonArray(value)) out.push_back(static_cast<int32_t>(int64_t(one)));
  return out;
}

void expect_near(const float* found, JsonValue expected) {
  for (const JsonValue number : JsonArray(expected)) EXPECT_NEAR(*found++, double(number), 1e-4);
}

class MtpModule : public testing::TestWithParam<const char*> {};

TEST_P(MtpModule, DraftsWhatNumpyDrafts) {
  const std::string folder = WEIR_SOURCE_DIR "/tests/data/drafts/mtp_" + std::string(GetParam());
  const auto card = card::ModelCard::open_folder(folder);
  ASSERT_TRUE(card.has_value()) << card.error().message;
  const kernels::Ops& ops = kernels::ops_for(kernels::Isa::kScalar);
  ThreadTeam team(2);
  auto model = Decoder::bind(
      *card, {.compute = Compute::kExact, .rows_max = 64, .draft = DraftOptions{.drafts_max = 4}},
      ops, 2);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  (*model)->pack(team, {});
  ASSERT_NE((*model)->drafter(), nullptr);
  const auto& module = static_cast<const Decoder&>((*model)->drafter()->net());

  std::ifstream file(folder + "/expected.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto expected = JsonDoc::parse(text.str());
  ASSERT_TRUE(expected.has_value());
  for (const JsonValue one : JsonArray(expected->root()["cases"])) {
    const std::vector<int32_t> prompt = ints(one["tokens"]), want = ints(one["drafts"]);
    // In one piece, or in chunks that begin within pages and at their ends.
    for (const int32_t chunk : {64, 32, 7}) {
      for (int32_t drafts = 1; drafts <= 4; ++drafts) {
        SCOPED_TRACE(testing::Message() << chunk << " at once, " << drafts << " drafts");
        DraftLoop loop(**model, ops, team, 64);
        loop.begin({&prompt, 1});
        const auto rows = static_cast<int32_t>(prompt.size());
        while (loop.chats()[0].computed < rows) loop.step(drafts, chunk, 1, {});
        EXPECT_EQ(loop.chats()[0].tokens.back(), int64_t(one["next"]));
        EXPECT_EQ(loop.chats()[0].drafts,
                  std::vector<int32_t>(want.begin(), want.begin() + drafts));
        expect_near((*model)->left((rows - 1) % chunk), one["feature"]);
        // The row of the last draft but one, which its own pass has left.
        const auto last = static_cast<size_t>(drafts - 1);
        expect_near(module.left(drafts > 1 ? 0 : (rows - 1) % chunk + (chunk < rows ? 1 : 0)),
                    one["chained"].at(last));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, MtpModule,
                         testing::Values("deepseek", "glm", "mimo", "qwen3_5", "qwen3_next"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace weir::model
