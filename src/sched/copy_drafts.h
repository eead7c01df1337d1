// CopyDrafts: drafts from the sequence's own text, the prompt and what has been answered. Where its
// last tokens stand earlier, what followed there is offered, as many tokens as are equal: edits,
// quotes and code repeat what they are about.
//
// Threads: as DraftSource.
#pragma once

#include "sched/draft_source.h"
#include "sched/text_index.h"

namespace weir::sched {

// How sure one may be of what follows so many equal tokens.
uint8_t sureness_of(int32_t equal_tokens);
// Adds to Request::text what it lacks of a sequence's text.
void extend_text(const DraftOrder& order);

class CopyDrafts final : public DraftSource {
 public:
  DraftKind kind() const override { return DraftKind::kNgram; }
  bool computes() const override { return false; }
  int32_t begin(const Request& request, int32_t) override { return request.text ? kDraftsMax : 0; }
  void draft(std::span<DraftOrder> orders) override;
};

}  // namespace weir::sched
