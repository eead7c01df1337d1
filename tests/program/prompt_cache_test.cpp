#include "program/prompt_cache.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(PromptCache, RefusesAModelWhoseStateIsLargerThanAPageMayBe) {
  ModelFootprint model{.kv_groups = {{.page_bytes = 720 << 10}}, .context_max = 8192};
  model.checkpoint_bytes = kv::disk::kPageBytesMax;
  EXPECT_EQ(prompt_cache_refusal(model, "rwkv"), "");
  model.checkpoint_bytes = 2 * kv::disk::kPageBytesMax;
  const std::string why =
      "rwkv: expected pages and states of at most 1.0 GiB each, found one of 2.0 GiB";
  EXPECT_EQ(prompt_cache_refusal(model, "rwkv"), why);
  EXPECT_EQ(prompt_cache_note({}, model, "rwkv"), "not for this model: " + why);
}

TEST(PromptCache, RefusesAModelThatRemembersNothing) {
  EXPECT_EQ(prompt_cache_refusal({}, "bert"), "bert remembers nothing of its tokens");
}

}  // namespace
}  // namespace weir
