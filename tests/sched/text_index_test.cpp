// TextIndex beside a search of the whole text.
#include "sched/text_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::sched {
namespace {

// The longest match of the last tokens of `tail` in text[begin, end) that something follows, and of
// equals the last.
TextIndex::Match plain_search(const std::vector<int32_t>& text, size_t begin,
                              std::span<const int32_t> tail) {
  TextIndex::Match best;
  for (size_t end = begin + 1; end < text.size(); ++end) {
    size_t length = 0;
    while (length < tail.size() && end - length > begin &&
           text[end - 1 - length] == tail[tail.size() - 1 - length])
      ++length;
    const auto found = static_cast<int32_t>(length);
    if (found >= TextIndex::kKey && found >= best.length)
      best = {.end = static_cast<int32_t>(end), .length = found};
  }
  return best;
}

TEST(TextIndex, FindsWhatASearchOfTheTextFinds) {
  std::mt19937 random(7);
  int32_t found = 0;
  for (int32_t vocabulary : {9, 30}) {
    TextIndex index(400);
    std::vector<int32_t> text;
    for (int i = 0; i < 400; ++i) {
      text.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(vocabulary)));
      // Now and then a stretch is repeated.
      if (i > 60 && random() % 20 == 0) text.back() = text[text.size() - 40];
      index.append(text.back());
      const TextIndex::Tail tail = index.tail();
      const TextIndex::Match match = index.find(tail.all());
      const TextIndex::Match plain = plain_search(text, 0, tail.all());
      // Of many places only the last few are looked at; the vocabularies leave no more than those.
      ASSERT_EQ(match.length, plain.length) << i;
      ASSERT_EQ(match.end, plain.length == 0 ? 0 : plain.end) << i;
      found += match.length > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 40);
}

TEST(TextIndex, FindsTheEndOfAnotherText) {
  TextIndex index(100);
  for (int32_t token = 0; token < 50; ++token) index.append(token);
  const TextIndex::Match match = index.find(std::vector<int32_t>{7, 20, 21, 22, 23});
  EXPECT_EQ(match.end, 24);
  EXPECT_EQ(match.length, 4);
  EXPECT_EQ(index.find(std::vector<int32_t>{22, 23}).length, 0);  // Too few to say anything.
  EXPECT_EQ(index.find(std::vector<int32_t>{47, 48, 49}).length, 0);  // Nothing follows.
  EXPECT_EQ(index.find(std::vector<int32_t>{1, 3, 5}).length, 0);
}

TEST(TextIndex, ForgetsTheBeginningOfALongText) {
  TextIndex index(TextIndex::kTokensMax + 1000);
  const int32_t size = TextIndex::kTokensMax + 5000;
  for (int32_t i = 0; i < size; ++i) index.append(i);
  EXPECT_EQ(index.size(), size);
  EXPECT_EQ(index.begin(), 5000);
  EXPECT_EQ(index[5000], 5000);
  EXPECT_EQ(index.find(std::vector<int32_t>{4000, 4001, 4002}).length, 0);
  EXPECT_EQ(index.find(std::vector<int32_t>{5999, 6000, 6001, 6002}).end, 6003);
  EXPECT_LE(TextIndex::memory_bytes(1 << 30), size_t{700} << 10);
}

TEST(TextIndex, LooksAtFewPlacesOfManyEqualOnes) {
  TextIndex index(10'000);
  for (int i = 0; i < 10'000; ++i) index.append(i % 2);
  const TextIndex::Match match = index.find(index.tail().all());
  EXPECT_EQ(match.length, TextIndex::kTailMax);
  EXPECT_EQ(match.end, 9998);
}

}  // namespace
}  // namespace weir::sched
