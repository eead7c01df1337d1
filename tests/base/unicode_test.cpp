#include "base/unicode.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace weir {
namespace {

TEST(Unicode, EachCategoryIsKnownByACharacterOfIt) {
  constexpr std::pair<char32_t, Category> kExamples[] = {
      {0x0378, Category::kCn}, {'A', Category::kLu},    {'a', Category::kLl},
      {0x01c5, Category::kLt}, {0x02b0, Category::kLm}, {0x05d0, Category::kLo},
      {0x0301, Category::kMn}, {0x0903, Category::kMc}, {0x20dd, Category::kMe},
      {'7', Category::kNd},    {0x2160, Category::kNl}, {0x00bd, Category::kNo},
      {'_', Category::kPc},    {'-', Category::kPd},    {'(', Category::kPs},
      {')', Category::kPe},    {0x00ab, Category::kPi}, {0x00bb, Category::kPf},
      {'!', Category::kPo},    {'+', Category::kSm},    {'$', Category::kSc},
      {'^', Category::kSk},    {0x00a9, Category::kSo}, {' ', Category::kZs},
      {0x2028, Category::kZl}, {0x2029, Category::kZp}, {'\n', Category::kCc},
      {0x200d, Category::kCf}, {0xd800, Category::kCs}, {0xe000, Category::kCo},
  };
  static_assert(std::size(kExamples) == static_cast<size_t>(Category::kCo) + 1);
  for (const auto& [c, expected] : kExamples) {
    EXPECT_EQ(category(c), expected) << std::hex << static_cast<uint32_t>(c);
    const char group = "CLLLLLMMMNNNPPPPPPPSSSSZZZCCCC"[static_cast<size_t>(expected)];
    EXPECT_EQ(is_letter(category(c)), group == 'L') << std::hex << static_cast<uint32_t>(c);
    EXPECT_EQ(is_mark(category(c)), group == 'M') << std::hex << static_cast<uint32_t>(c);
    EXPECT_EQ(is_number(category(c)), group == 'N') << std::hex << static_cast<uint32_t>(c);
    EXPECT_EQ(is_punctuation(category(c)), group == 'P') << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(Unicode, CasesAreSimpleMappings) {
  EXPECT_EQ(upper_case(U'é'), U'É');
  EXPECT_EQ(lower_case(U'Ж'), U'ж');
  EXPECT_EQ(upper_case(U'ǆ'), U'Ǆ');
  EXPECT_EQ(title_case(U'ǆ'), U'ǅ');
  EXPECT_EQ(lower_case(U'ǅ'), U'ǆ');
  for (const char32_t c : {U'1', U'日', U'\U0001f99c'}) {
    EXPECT_EQ(lower_case(c), c);
    EXPECT_EQ(upper_case(c), c);
    EXPECT_EQ(title_case(c), c);
  }
}

TEST(Unicode, NormalFormsComposeAndDecompose) {
  const auto normalised = [](std::string_view text, NormalForm form) {
    std::string out;
    append_normalised(out, text, form, 1000);
    return out;
  };
  EXPECT_EQ(normalised("caf\u00e9", NormalForm::kNfd), "cafe\u0301");
  EXPECT_EQ(normalised("cafe\u0301", NormalForm::kNfc), "caf\u00e9");
  EXPECT_EQ(normalised("\ufb01x\u00bd", NormalForm::kNfc), "\ufb01x\u00bd");
  EXPECT_EQ(normalised("\ufb01x\u00bd", NormalForm::kNfkc), "fix1\u20442");
  EXPECT_EQ(normalised("q\u0307\u0323", NormalForm::kNfd), "q\u0323\u0307");  // Marks in order.
}

TEST(Unicode, GraphemeClustersEndWhereTheNextBegins) {
  std::vector<size_t> ends;
  grapheme_ends("", ends);
  EXPECT_TRUE(ends.empty());
  grapheme_ends("ae\u0301\r\n\U0001f468\u200d\U0001f469b", ends);
  EXPECT_EQ(ends, (std::vector<size_t>{1, 4, 6, 17, 18}));
}

}  // namespace
}  // namespace weir
