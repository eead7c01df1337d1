// Drafts from texts: what is copied, and where a prediction is found again.
#include "sched/copy_drafts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sched/prediction_drafts.h"

namespace weir::sched {
namespace {

std::vector<int32_t> counted(int32_t first, int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Asked {
  explicit Asked(std::vector<int32_t> prompt)
      : request(std::move(prompt), sample::SamplingParams(), 1000, false) {
    request.text = std::make_unique<TextIndex>(2000);
    request.text->append(request.prompt);
  }
  void predict(const std::vector<int32_t>& tokens) {
    auto index = std::make_shared<TextIndex>(static_cast<int64_t>(tokens.size()));
    index->append(tokens);
    request.prediction = std::move(index);
  }
  void answer(const std::vector<int32_t>& tokens) {
    for (const int32_t token : tokens) request.log.append({.token = token}, {});
  }
  // What a source offers after `pending`.
  std::vector<int32_t> drafts(DraftSource& source, size_t room,
                              const std::vector<int32_t>& pending = {}) {
    std::vector<Draft> space(room);
    DraftOrder order{.request = &request, .pending = pending, .memory = {}, .drafts = space};
    source.draft({&order, 1});
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < order.count; ++i) tokens.push_back(space[static_cast<size_t>(i)].token);
    sureness = order.count > 0 ? space[0].sureness : 0;
    return tokens;
  }

  Request request;
  uint8_t sureness = 0;
};

using Tokens = std::vector<int32_t>;

TEST(CopyDrafts, AreWhatFollowedTheSameTokens) {
  CopyDrafts source;
  Asked asked(counted(100, 50));
  EXPECT_EQ(source.begin(asked.request, 0), DraftSource::kDraftsMax);
  EXPECT_EQ(asked.drafts(source, 8), Tokens());
  asked.answer({7, 120, 121});
  EXPECT_EQ(asked.drafts(source, 8), Tokens());  // Two equal tokens say nothing.
  // As many as are equal, and as there is room for.
  EXPECT_EQ(asked.drafts(source, 8, {122}), Tokens({123, 124, 125}));
  const uint8_t after_three = asked.sureness;
  asked.answer({122, 123});
  EXPECT_EQ(asked.drafts(source, 8, {124, 125}), counted(126, 6));
  EXPECT_GT(asked.sureness, after_three);
  EXPECT_EQ(asked.drafts(source, 2, {124, 125}), counted(126, 2));
}

TEST(CopyDrafts, GoOnWhereTheTextEnds) {
  CopyDrafts source;
  Asked asked({5, 6, 7, 5, 6, 7, 5, 6, 7, 5});
  EXPECT_EQ(asked.drafts(source, 6), Tokens({6, 7, 5, 6, 7, 5}));
}

TEST(CopyDrafts, NeedAnIndex) {
  CopyDrafts source;
  Asked asked({1, 2, 3, 1, 2, 3});
  asked.request.text = nullptr;
  EXPECT_EQ(source.begin(asked.request, 0), 0);
  EXPECT_EQ(asked.drafts(source, 6), Tokens());
}

TEST(PredictionDrafts, BeginAtTheBeginningAndFollowTheAnswer) {
  PredictionDrafts source(4);
  Asked asked({1, 2, 3});
  EXPECT_EQ(source.begin(asked.request, 0), 0);  // There is none.
  asked.predict(counted(100, 50));
  EXPECT_EQ(source.begin(asked.request, 0), DraftSource::kDraftsMax);
  EXPECT_EQ(asked.drafts(source, 4), counted(100, 4));
  asked.answer(counted(100, 3));
  EXPECT_EQ(asked.drafts(source, 4), counted(103, 4));
  EXPECT_EQ(asked.drafts(source, 4, {103, 104}), counted(105, 4));
  asked.answer(counted(103, 45));
  EXPECT_EQ(asked.drafts(source, 4), counted(148, 2));  // Nothing comes after it.
}

TEST(PredictionDrafts, AreFoundAgainWhereTheAnswerComesBackToIt) {
  PredictionDrafts source(4);
  Asked asked({1, 2, 3});
  Tokens text = counted(100, 200);
  text[150] = 11, text[151] = 12;  // Far away, two tokens that come again near.
  text[20] = 11, text[21] = 12;
  asked.predict(text);
  source.begin(asked.request, 0);
  asked.answer(counted(100, 10));
  EXPECT_EQ(asked.drafts(source, 2), counted(110, 2));
  asked.answer({9});  // Something else.
  EXPECT_EQ(asked.drafts(source, 2), Tokens());
  asked.answer({11});
  EXPECT_EQ(asked.drafts(source, 2), Tokens());
  asked.answer({12});  // Two tokens are enough where it was lost.
  EXPECT_EQ(asked.drafts(source, 2), counted(122, 2));
  asked.answer({9, 290, 291});
  EXPECT_EQ(asked.drafts(source, 2), Tokens());  // Not elsewhere.
  asked.answer({292});
  EXPECT_EQ(asked.drafts(source, 2), counted(293, 2));
}

TEST(PredictionDrafts, ForgetTheSequenceBefore) {
  PredictionDrafts source(4);
  Asked first({1, 2, 3}), second({1, 2, 3});
  for (Asked* asked : {&first, &second}) asked->predict(counted(100, 50));
  source.begin(first.request, 0);
  first.answer(counted(100, 30));
  EXPECT_EQ(first.drafts(source, 2), counted(130, 2));
  source.begin(second.request, 0);
  EXPECT_EQ(second.drafts(source, 2), counted(100, 2));
}

}  // namespace
}  // namespace weir::sched
