// Speculation gives steps their drafts. A plan leaves room for them in slices of generated tokens
// (Sequence::drafts). When the step before has run, and it is known where each sequence stands,
// bind() asks the sources, has the controller say which drafts pay, and cuts the room that is left.
//
// Threads: the engine thread. Allocates at construction only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sched/draft_controller.h"
#include "sched/draft_source.h"
#include "sched/engine_options.h"
#include "sched/engine_state.h"

namespace weir::sched {

class Speculation {
 public:
  Speculation(EngineState& state, const SpeculationOptions& options);

  // The first rows of a request are planned.
  void begin(Sequence* seq);
  // Between two steps: `before` has run, and what it left is in no log yet.
  void bind(StepBuffer& next, StepBuffer& before);
  // The step has run, in so many seconds after bind(), which may be long before it; `before`: the
  // one whose tokens it began with.
  void follow(StepBuffer& ran, const StepBuffer& before, double seconds);

 private:
  // What may be pending at a bind: the drafts that a step has taken, a token, and what it has
  // forced.
  static constexpr size_t kPendingMax = DraftSource::kDraftsMax + 1 + sample::kForcedTokensMax;

  // Tokens of a sequence that are not in its log.
  struct Pending {
    std::array<int32_t, kPendingMax> tokens;
    size_t count = 0;
    size_t forced = 0;  // The last ones, which follow the token that the next step begins with.

    std::span<const int32_t> all() const { return std::span(tokens).first(count); }
    std::span<const int32_t> last_forced() const { return all().last(forced); }
  };

  // A slice that has room for drafts, and the best that was made for it.
  struct Candidate {
    size_t slice = 0;
    int32_t room = 0;
    int32_t row = 0;  // The first one whose next token is wanted.
    Pending pending;
    std::array<Draft, DraftSource::kDraftsMax> drafts;  // The forced ones first.
    std::array<Draft, DraftSource::kDraftsMax> tried;   // Of one source.
  };

  static Pending pending_tokens(StepBuffer& ran, int32_t first_row, const Sequence* seq);
  void find_candidates(StepBuffer& next, StepBuffer& before);
  void ask(StepBuffer& next, StepBuffer& before, int32_t source);
  void add_order(StepBuffer& next, StepBuffer& before, size_t index);
  void write(StepBuffer& next);
  double keep_up(const exec::StepWork& work, bool pure);
  void add_seconds(const DraftSource& source, double seconds);
  void count(const DraftChoice& choice, int32_t taken, DraftCounts& counts);

  EngineState& state_;
  const int32_t drafts_max_;
  const std::vector<DraftSource*> sources_;
  const bool measured_;
  const std::function<double()> stalled_seconds_;
  DraftController controller_;
  double stalled_ = 0, stalled_share_ = 0;  // What that said last, and its share of steps lately.
  // Of the step that is bound, or runs.
  std::vector<Candidate> candidates_;
  std::vector<DraftChoice> choices_;  // Of each candidate.
  // Scratch.
  std::vector<DraftOrder> orders_;
  std::vector<DraftChoice> asked_;
  std::vector<int32_t> room_;  // Of each candidate, or of a slice to be cut.
};

}  // namespace weir::sched
