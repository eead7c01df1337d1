#include "base/near_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"temperature", "max_tokens", "top_p",
                                                    "top_k",       "n",          "stop"};

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("prot", "port"), 1u);
  EXPECT_EQ(edit_distance("abcd", "badc"), 2u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "what was swapped is not edited again";
}

TEST(NearName, FindsWhatAMistypedNameWasMeantToBe) {
  EXPECT_EQ(near_name("temprature", kNames), "temperature");
  EXPECT_EQ(near_name("tempreature", kNames), "temperature");
  EXPECT_EQ(near_name("max_token", kNames), "max_tokens");
  EXPECT_EQ(near_name("sotp", kNames), "stop");
}

TEST(NearName, ReadsOtherSpellingsOfTheSameName) {
  EXPECT_EQ(near_name("maxTokens", kNames), "max_tokens");
  EXPECT_EQ(near_name("max-tokens", kNames), "max_tokens");
  EXPECT_EQ(near_name("TopP", kNames), "top_p");
}

TEST(NearName, IsEmptyWhereNoNameIsNear) {
  EXPECT_EQ(near_name("color", kNames), "");
  EXPECT_EQ(near_name("", kNames), "");
  EXPECT_EQ(near_name("_-_", kNames), "");
  EXPECT_EQ(near_name("m", kNames), "") << "one letter of one is another name";
  EXPECT_EQ(near_name(std::string(1 << 20, 't'), kNames), "");
}

}  // namespace
}  // namespace weir
