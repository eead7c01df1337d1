// What the parts find in texts and in series: repeated words, slopes, answers' members.
#include <gtest/gtest.h>

#include "suite/lm_eval.h"
#include "suite/repetition.h"
#include "suite/sample_text.h"
#include "suite/trend.h"
#include "suite/words.h"

namespace weir::suite {
namespace {

TEST(FrequentWords, AreShares) {
  const FrequentWord word = most_frequent_word("a b  a\nc a", 5);
  EXPECT_EQ(word.word, "a");
  EXPECT_DOUBLE_EQ(word.share, 0.6);
  EXPECT_EQ(most_frequent_word("a b a c a", 6).share, 0) << "too few words";
  EXPECT_EQ(most_frequent_word("", 0).share, 0);
}

TEST(Slopes, AreThoseOfALine) {
  const Sample samples[] = {{0, 100}, {1, 10}, {2, 12}, {3, 14}};
  EXPECT_DOUBLE_EQ(slope(samples, 1), 2);
  EXPECT_LT(slope(samples, 0), 0) << "with the first";
  EXPECT_EQ(slope(samples, 3), 0) << "one moment has no slope";
  EXPECT_EQ(slope(samples, 4), 0);
}

TEST(Words, AreTheSameForASeed) {
  EXPECT_EQ(words(20, 3), words(20, 3));
  EXPECT_NE(words(20, 3), words(20, 4));
  EXPECT_EQ(words(0, 3), "");
}

TEST(Answers, AreReadWholeAndInEvents) {
  Answer whole{.status = 200,
               .body = R"({"choices": [{"text": "ab"}],
      "usage": {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}})",
               .seconds = 2};
  EXPECT_EQ(text_of(whole), "ab");
  EXPECT_EQ(usage_of(whole, "prompt_tokens"), 7);
  EXPECT_EQ(cached_tokens_of(whole), 4);
  EXPECT_EQ(first_text_of(whole), 2);
  Answer stream{.status = 200, .seconds = 2};
  stream.events = {{0.1, R"({"choices": [{"delta": {"role": "assistant", "content": ""}}]})"},
                   {0.5, R"({"choices": [{"delta": {"content": "a"}}]})"},
                   {0.6, R"({"choices": [{"delta": {"content": "b"}}]})"},
                   {0.7, R"({"choices": [], "usage": {"completion_tokens": 2}})"}};
  EXPECT_EQ(text_of(stream), "ab");
  EXPECT_EQ(first_text_of(stream), 0.5);
  EXPECT_EQ(usage_of(stream, "completion_tokens"), 2);
}

TEST(SampleText, IsThere) {
  EXPECT_TRUE(sample_text().starts_with("Alice was beginning"));
  EXPECT_GT(sample_text().size(), 5000u);
}

TEST(LmEval, IsAskedForRemoteTokens) {
  const std::vector<std::string> words = lm_eval_words("http://h:1", "m", "arc_easy");
  EXPECT_EQ(words[0], "lm_eval");
  EXPECT_NE(words[4].find("model=m,base_url=http://h:1/v1/completions,tokenizer_backend=remote"),
            std::string::npos)
      << words[4];
  EXPECT_EQ(words.back(), "arc_easy");
}

}  // namespace
}  // namespace weir::suite
