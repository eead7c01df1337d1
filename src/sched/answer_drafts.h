// AnswerDrafts: drafts from earlier answers. Where the last tokens of a sequence's text stand in an
// answer that has ended, or in the end of the prompt before it, what followed there is offered, as
// many tokens as are equal: a question that is asked again, answers of one form, and agents that
// write a file once more repeat what was answered before.
//
// Requests learn, by how fast they are answered, what is in the texts that theirs is compared with.
// So each cache salt, which no two keys share, and each adapter has a text of its own. The latest
// of them are kept, each of the last TextIndex::kTokensMax tokens.
//
// Threads: as DraftSource.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/draft_source.h"
#include "sched/text_index.h"

namespace weir::sched {

class AnswerDrafts final : public DraftSource {
 public:
  // Of the prompt's end, before its answer: what is equal there says which answer follows.
  static constexpr int32_t kLeadTokens = TextIndex::kTailMax;
  // Of an answer, its first ones: adding them takes a tenth of a millisecond at most, while a step
  // runs.
  static constexpr int32_t kAnswerTokensMax = 8192;

  // Keeps so many texts, at least one.
  explicit AnswerDrafts(int32_t texts_max);
  static int64_t memory_bytes(int32_t texts) {
    return texts * static_cast<int64_t>(TextIndex::memory_bytes(TextIndex::kTokensMax));
  }

  DraftKind kind() const override { return DraftKind::kAnswers; }
  bool computes() const override { return false; }
  // A request with a prediction says itself what to expect.
  int32_t begin(const Request& request, int32_t) override {
    return wants(request) ? kDraftsMax : 0;
  }
  void draft(std::span<DraftOrder> orders) override;
  void end(const Request& request) override;

 private:
  // Answers to requests that may share what they tell.
  struct Text {
    uint64_t salt = 0, adapter = 0;
    uint64_t added = 0;  // When the last answer was, counted in answers; 0: it has none.
    TextIndex tokens{TextIndex::kTokensMax};
  };

  static bool wants(const Request& request) { return request.text && !request.prediction; }
  Text* find(const Request& request);

  std::vector<Text> texts_;
  uint64_t answers_ = 0;
};

}  // namespace weir::sched
