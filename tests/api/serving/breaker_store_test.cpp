// Sequence breakers as tokens: within one, and across several.
#include "api/serving/breaker_store.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api {
namespace {

TEST(BreakerStore, FindsTextsWithinTokensAndAcrossThem) {
  const auto tokenizer = text::Tokenizer::load(byte_tokenizer_json());
  ASSERT_TRUE(tokenizer);
  BreakerStore store(**tokenizer, kVocab);
  const auto free = [&](const std::optional<std::vector<std::string>>& texts,
                        const std::string& said) {
    const std::vector<int32_t> tokens = (*tokenizer)->encode(said);
    const auto breaker = store.get(texts)->find_last(tokens);
    return breaker ? tokens.size() - 1 - breaker->last : tokens.size();
  };
  for (const char* said : {"a\nbc", "a:bc", "a\"bc", "a*bc"})
    EXPECT_EQ(free(std::nullopt, said), 2u);
  EXPECT_EQ(free(std::nullopt, "abcd"), 4u);
  const std::vector<std::string> names = {"Anna:", "\n"};
  EXPECT_EQ(free(names, "xyAnna:bc"), 2u);
  EXPECT_EQ(free(names, "xyAnn:bc"), 8u);
  EXPECT_EQ(free(names, "x\nyz"), 2u);
  EXPECT_EQ(free(std::vector<std::string>(), "a\nb"), 3u);
}

TEST(BreakerStore, KeepsWhatWasAskedForLately) {
  const auto tokenizer = text::Tokenizer::load(byte_tokenizer_json());
  ASSERT_TRUE(tokenizer);
  BreakerStore store(**tokenizer, kVocab);
  const auto first = store.get(std::nullopt);
  EXPECT_EQ(store.get(default_breakers()), first);
  const std::vector<std::string> a = {"a"}, b = {"b"};
  EXPECT_EQ(store.get(a), store.get(a));
  store.get(b);
  EXPECT_NE(store.get(std::nullopt), first);  // Two others have come since.
}

}  // namespace
}  // namespace weir::api
