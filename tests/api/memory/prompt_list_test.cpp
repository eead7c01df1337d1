#include "api/memory/prompt_list.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

using Ids = std::vector<int32_t>;

TEST(PromptList, GivesBackWhatWasAdded) {
  const Ids prompts[] = {{1, 2, 3}, {1, 2, 4, 5}, {9}, {1, 2, 3}, {1, 2, 3, 4}, {1}};
  PromptList list;
  size_t tokens = 0;
  for (const Ids& prompt : prompts) {
    list.add(prompt);
    tokens += prompt.size();
  }
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list.tokens(), tokens);
  EXPECT_EQ(list.longest(), 4u);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list.tokens(i), prompts[i].size());
    EXPECT_EQ(list.at(i), prompts[i]);
    list.drop(i);  // The others need nothing of it.
  }
}

TEST(PromptList, KeepsACommonBeginningOnce) {
  PromptList list;
  Ids prompt(10'000, 7);
  for (int32_t i = 0; i < 1000; ++i) {
    prompt.resize(10'000);
    prompt.push_back(i);
    list.add(prompt);
  }
  EXPECT_EQ(list.at(999), prompt);
  EXPECT_EQ(list.memory_bytes(), PromptList::bytes_of(1000, 10'000 + 1000));
}

}  // namespace
}  // namespace weir::api
