#include "model/media_tokens.h"

#include <gtest/gtest.h>

namespace weir::model {
namespace {

Result<std::vector<MediaTokens>> tokens_of(const std::string& config) {
  const auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc);
  return media_tokens(doc->root());
}

TEST(MediaTokens, Gemma3nHasThoseOfVisionAndHearing) {
  const auto usual = tokens_of(R"({"model_type":"gemma3n"})");
  ASSERT_TRUE(usual && usual->size() == 2);
  EXPECT_EQ((*usual)[0].first, 262144);
  EXPECT_EQ((*usual)[1].first, 262272);
  EXPECT_EQ((*usual)[1].width, 1536);
  const auto small =
      tokens_of(R"({"model_type":"gemma3n","audio_config":{"vocab_offset":254,"vocab_size":2,)"
                R"("hidden_size":32,"rms_norm_eps":0.5}})");
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ((*small)[1].first, 254);
  EXPECT_EQ((*small)[1].count, 2);
  EXPECT_EQ((*small)[1].width, 32);
  EXPECT_EQ((*small)[1].eps, 0.5f);
}

TEST(MediaTokens, OthersHaveNone) {
  const auto none = tokens_of(R"({"model_type":"gemma4","audio_config":{"vocab_offset":254}})");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(MediaTokens, AKeyThatIsWrongIsNamed) {
  const auto wrong = tokens_of(R"({"model_type":"gemma3n","vision_config":{"vocab_size":0}})");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("vision_config.vocab_size"), std::string::npos)
      << wrong.error().message;
}

}  // namespace
}  // namespace weir::model
