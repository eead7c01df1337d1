#include "api/serving/model_search.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

TEST(ModelSearch, ReadsTheQuery) {
  const auto search = model_search("q=qwen3+8b%204bit&sort=likes&filter=mlx&cursor=a%3Db&x=y");
  ASSERT_TRUE(search) << search.error().message;
  EXPECT_EQ(search->words, "qwen3 8b 4bit");
  EXPECT_EQ(search->sort, "likes");
  EXPECT_EQ(search->filter, "mlx");
  EXPECT_EQ(search->cursor, "a=b");
  const auto none = model_search("");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->words, "");
  EXPECT_EQ(none->sort, "downloads");
}

TEST(ModelSearch, RefusesWhatItCannotAsk) {
  for (const char* query : {"q=%", "q=a%0db", "sort=size", "sort="}) {
    const auto search = model_search(query);
    ASSERT_FALSE(search) << query;
    EXPECT_EQ(search.error().code, ErrorCode::kInvalid) << query;
    EXPECT_EQ(search.error().param, query[0] == 'q' ? "q" : "sort") << query;
  }
  EXPECT_FALSE(model_search("q=" + std::string(600, 'x')));
}

}  // namespace
}  // namespace weir::api
