// Drafts from earlier answers: what is found again, and by whom.
#include "sched/answer_drafts.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace weir::sched {
namespace {

using Tokens = std::vector<int32_t>;

Tokens counted(int32_t first, int32_t count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A request with so much of its answer.
std::unique_ptr<Request> asked(const Tokens& prompt, const Tokens& answer, uint64_t salt = 0) {
  const int64_t tokens = std::ssize(prompt) + 20000;
  auto request = std::make_unique<Request>(prompt, sample::SamplingParams(), 20000, false);
  request->text = std::make_unique<TextIndex>(tokens);
  request->text->append(request->prompt);
  request->cache_salt = salt;
  for (const int32_t token : answer) request->log.append({.token = token}, {});
  return request;
}

Tokens drafts(AnswerDrafts& source, const Request& request, size_t room = 8) {
  std::vector<Draft> space(room);
  DraftOrder order{.request = &request, .pending = {}, .memory = {}, .drafts = space};
  source.draft({&order, 1});
  Tokens tokens;
  for (int32_t i = 0; i < order.count; ++i) tokens.push_back(space[static_cast<size_t>(i)].token);
  return tokens;
}

TEST(AnswerDrafts, AreTheAnswerToTheSameQuestion) {
  AnswerDrafts source(4);
  const Tokens question = counted(100, 20);
  const auto first = asked(question, counted(500, 12));
  EXPECT_EQ(source.begin(*first, 0), DraftSource::kDraftsMax);
  EXPECT_EQ(drafts(source, *first), Tokens());
  source.end(*first);
  EXPECT_EQ(drafts(source, *asked(question, {})), counted(500, 8));
  EXPECT_EQ(drafts(source, *asked(question, counted(500, 3))), counted(503, 8));
  // No further than the answer goes, although another one follows.
  source.end(*asked(counted(200, 20), counted(700, 12)));
  EXPECT_EQ(drafts(source, *asked(question, counted(500, 9))), counted(509, 3));
  EXPECT_EQ(drafts(source, *asked(question, counted(500, 12))), Tokens());
}

TEST(AnswerDrafts, AreAsManyAsAreEqual) {
  AnswerDrafts source(4);
  source.end(*asked(counted(100, 20), counted(500, 12)));
  EXPECT_EQ(drafts(source, *asked({1, 2, 3}, {9, 503, 504})), Tokens());
  EXPECT_EQ(drafts(source, *asked({1, 2, 3}, {9, 503, 504, 505})), counted(506, 3));
  EXPECT_EQ(drafts(source, *asked({1, 2, 3}, {9, 503, 504, 505}), 2), counted(506, 2));
}

TEST(AnswerDrafts, AreNobodyElsesAnswers) {
  AnswerDrafts source(4);
  const Tokens question = counted(100, 20);
  source.end(*asked(question, counted(500, 12), /*salt=*/1));
  EXPECT_EQ(drafts(source, *asked(question, {}, 1)), counted(500, 8));
  EXPECT_EQ(drafts(source, *asked(question, {}, 2)), Tokens());
  const auto adapted = asked(question, {}, 1);
  adapted->adapter_key = 7;
  EXPECT_EQ(drafts(source, *adapted), Tokens());
}

// The latest who were answered have a place.
TEST(AnswerDrafts, ForgetThoseWhoWereAnsweredLongAgo) {
  AnswerDrafts source(4);
  const Tokens question = counted(100, 20);
  for (uint64_t salt = 1; salt <= 4; ++salt) source.end(*asked(question, counted(500, 12), salt));
  source.end(*asked(question, counted(600, 12), 1));
  source.end(*asked(question, counted(700, 12), 99));
  EXPECT_EQ(drafts(source, *asked(question, {}, 99)), counted(700, 8));
  EXPECT_EQ(drafts(source, *asked(question, {}, 1)), counted(600, 8));
  EXPECT_EQ(drafts(source, *asked(question, {}, 2)), Tokens());
  EXPECT_EQ(drafts(source, *asked(question, {}, 3)), counted(500, 8));
}

TEST(AnswerDrafts, KeepTheBeginningOfALongAnswer) {
  AnswerDrafts source(4);
  constexpr int32_t kMost = AnswerDrafts::kAnswerTokensMax;
  source.end(*asked(counted(100, 20), counted(1000, kMost + 500)));
  EXPECT_EQ(drafts(source, *asked({1}, counted(1000 + kMost - 20, 10))), counted(990 + kMost, 8));
  EXPECT_EQ(drafts(source, *asked({1}, counted(1000 + kMost - 10, 10))), Tokens());
  EXPECT_EQ(drafts(source, *asked({1}, counted(1000 + kMost + 10, 10))), Tokens());
}

TEST(AnswerDrafts, NeedAnIndexAndAnAnswer) {
  AnswerDrafts source(4);
  const Tokens question = counted(100, 20);
  const auto without = asked(question, counted(500, 12));
  without->text = nullptr;
  EXPECT_EQ(source.begin(*without, 0), 0);
  source.end(*without);
  source.end(*asked(question, {}));
  EXPECT_EQ(drafts(source, *asked(question, {})), Tokens());
  source.end(*asked(question, counted(500, 12)));
  EXPECT_EQ(drafts(source, *without), Tokens());
  const auto predicted = asked(question, {});
  predicted->prediction = std::make_shared<TextIndex>(10);
  EXPECT_EQ(source.begin(*predicted, 0), 0);
  EXPECT_EQ(drafts(source, *predicted), Tokens());
}

}  // namespace
}  // namespace weir::sched
