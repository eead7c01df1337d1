// PredictionDrafts: drafts from the text that a client expects in the answer (Request::prediction;
// OpenAI's predicted outputs). A cursor goes through it with the answer. Where the answer has left
// it, it is looked for where the last tokens of the answer stand: near where it was lost first, and
// then anywhere.
//
// Threads: as DraftSource.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/draft_source.h"
#include "sched/text_index.h"

namespace weir::sched {

class PredictionDrafts final : public DraftSource {
 public:
  // `sequences_max`: numbers of sequences are below it.
  explicit PredictionDrafts(int32_t sequences_max)
      : cursors_(static_cast<size_t>(sequences_max)) {}

  DraftKind kind() const override { return DraftKind::kPrediction; }
  bool computes() const override { return false; }
  int32_t begin(const Request& request, int32_t sequence) override;
  void draft(std::span<DraftOrder> orders) override;

 private:
  // Where a sequence is in its prediction.
  struct Cursor {
    int32_t next = 0;   // The token that is expected.
    int32_t equal = 0;  // So many before it were as expected; 0: it is lost.
    int32_t seen = 0;   // Tokens of the sequence's text.
  };

  static void follow_text(Cursor& cursor, const TextIndex& prediction, const TextIndex& text);

  std::vector<Cursor> cursors_;
};

}  // namespace weir::sched
