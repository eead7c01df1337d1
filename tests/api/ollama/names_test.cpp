#include "api/ollama/names.h"

#include <gtest/gtest.h>

namespace weir::api::ollama {
namespace {

TEST(OllamaNames, LoseWhatOllamaAdds) {
  EXPECT_EQ(bare_name("qwen"), "qwen");
  EXPECT_EQ(bare_name("qwen:latest"), "qwen");
  EXPECT_EQ(bare_name("qwen:4b"), "qwen:4b");
  EXPECT_EQ(bare_name("hf.co/org/name:Q4_K_M"), "org/name:Q4_K_M");
  EXPECT_EQ(bare_name("huggingface.co/org/name:latest"), "org/name");
  EXPECT_EQ(bare_name(""), "");
}

TEST(OllamaNames, AreListedWithATag) {
  EXPECT_EQ(tagged_name("qwen"), "qwen:latest");
  EXPECT_EQ(tagged_name("org/name"), "org/name:latest");
  EXPECT_EQ(tagged_name("org/name:Q4_K_M"), "org/name:Q4_K_M");
  EXPECT_EQ(tagged_name("host:80/name"), "host:80/name:latest");
}

TEST(OllamaNames, StandInErrorsOnlyWithTheirBeginning) {
  EXPECT_EQ(not_found("x").message, "model 'x' not found");
  EXPECT_LT(not_found(std::string(10'000, 'x')).message.size(), 500u);
}

}  // namespace
}  // namespace weir::api::ollama
