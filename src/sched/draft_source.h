// DraftSource: where guesses of a sequence's next tokens come from. What they are changes no
// answer, only how many steps it takes: a step computes them as if they were right and takes those
// that are.
//
// Threads: the engine thread, between two steps. Neither blocks nor allocates.
#pragma once

#include <cstdint>
#include <span>

#include "sched/request.h"

namespace weir::sched {

class DraftSource {
 public:
  // A slice's rows are verified together.
  static constexpr int32_t kDraftsMax = 15;

  virtual ~DraftSource() = default;

  // Most drafts that a step computes of this request; at most kDraftsMax. 0: none.
  virtual int32_t most(const Request& request) const = 0;
  // Fills `drafts` with what may follow the prompt, the request's log, and `pending`, the tokens of
  // output that are not in the log yet.
  virtual void draft(const Request& request, std::span<const int32_t> pending,
                     std::span<int32_t> drafts) = 0;
};

}  // namespace weir::sched
