// DraftSource: where guesses of sequences' next tokens come from. What they are changes no answer,
// only how many steps it takes: a step computes them as if they were right and takes those that
// are.
//
// A life of a request, as a source sees it: begin(), then, of each step that has run, follow(), of
// each one that is to run with drafts of the request draft(), and end(). Its number is that of
// another request from the next begin() on.
//
// Threads: the engine thread. begin() and end() come while a step may run; the others between two
// steps, when the team rests, so that a source may have it compute. None but begin() allocates.
#pragma once

#include <cstdint>
#include <span>

#include "exec/drafter.h"
#include "exec/step_work.h"
#include "kv/memory_view.h"
#include "sched/draft_kind.h"
#include "sched/request.h"

namespace weir::sched {

// A guess of a token.
struct Draft {
  // How sure a source is of its drafts, in classes: as it sees it, one of class s is right in
  // (s + 1/2) / kClasses of all cases. What is learnt of one draft holds for all of its class.
  static constexpr uint8_t kClasses = 8;
  static constexpr uint8_t class_of(float probability) {
    const float scaled = probability * kClasses;
    return scaled < 1 ? 0 : scaled < kClasses ? static_cast<uint8_t>(scaled) : kClasses - 1;
  }

  int32_t token = 0;
  uint8_t sureness = 0;
};

// What is asked of one sequence: the tokens that may follow its text.
struct DraftOrder {
  const Request* request = nullptr;
  int32_t sequence = 0;  // As model::BatchSlice has it.
  // The text is the prompt, the request's log, and these, which are not in the log yet. The last
  // `forced` of them have been forced by a grammar: they are computed in the same step as the
  // drafts. What comes before them the steps before have computed, but for the last token.
  std::span<const int32_t> pending;
  int32_t forced = 0;
  // Where the first draft stands, and the sequence's memory, which covers all that may be made.
  int32_t position = 0;
  kv::MemoryView memory;
  // Room for the drafts, as many as are asked for at most. The source fills the first `count`.
  std::span<Draft> drafts;
  int32_t count = 0;
};

class DraftSource {
 public:
  // A slice's rows are verified together.
  static constexpr int32_t kDraftsMax = 15;

  virtual ~DraftSource() = default;

  virtual DraftKind kind() const = 0;
  // Its drafts take time that counts beside a step's: they are asked for only where they are
  // expected to pay. Else any number may be asked for and left.
  virtual bool computes() const = 0;

  // The first rows of a request are planned. Returns the most drafts that a step computes of it, at
  // most kDraftsMax; 0: none. `sequence`: its number, as DraftOrder has it.
  virtual int32_t begin(const Request& request, int32_t sequence) = 0;

  // A step has run: each of them, in their order, whether or not it had drafts; none of a slab.
  // `ran.results.taken` says what it took. Its memory views and tokens are valid during the call.
  // `keep_up` is for a source that computes: what it is to compute of the step.
  virtual void follow(const exec::StepWork& ran, exec::KeepUp keep_up) {
    static_cast<void>(ran), static_cast<void>(keep_up);
  }

  // At most once between two steps.
  virtual void draft(std::span<DraftOrder> orders) = 0;

  // No more tokens come of a request, whether or not it had a begin(). Its log has all that came,
  // and is finished after this; a step may still have rows of it, which are dropped.
  virtual void end(const Request& request) { static_cast<void>(request); }
};

}  // namespace weir::sched
