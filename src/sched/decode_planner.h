// DecodePlanner: which generated tokens a step computes. Every running sequence past its prompt has
// its one token in every step, and those that a grammar has forced.
//
// Callers (shares.h), where there are several of one priority. Generated tokens of one caller take
// no more rows than what the others have in the step is worth (step_shares.h): its sequences have
// them in turn, the longest without first.
//
// Drafts. Of a sequence that has drafts (Sequence::drafts) a slice has room for some after its last
// token; how many there are is said between the two steps (speculation.h). They take what nothing
// else needs: no row of a token that is certain, no memory for which another sequence would give
// way, and while there are prompts to compute little of their room.
// How many of them are its next tokens is known when the step has run, and the plan of the step
// after is made before: it takes none of them as taken, has the memory for all of them, and its
// slice stands further on by those that were (Slice::late). Until Scheduler::settle() says,
// Sequence::computed and `length` count what is certain, and Sequence::unsettled what may come on
// top.
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/admission.h"
#include "sched/open_sequences.h"
#include "sched/step_shares.h"

namespace weir::sched {

class DecodePlanner {
 public:
  // The part of a step's room that drafts have while there are prompts to compute. It is kept for
  // them before it is known how many there are: a 32nd costs prompts 3 % of their rows at most,
  // which are less than that of a step's time, and is what a few sequences can use.
  static constexpr int32_t kDraftPart = 32;

  // Both outlive it.
  DecodePlanner(OpenSequences& open, Admission& admission);

  // Adds the slices to an empty step. For those that lack memory sequences give way.
  // `prompt_tokens_max`: most that the step may have beside them.
  void plan(Step& step, int32_t prompt_tokens_max);

  // How many rows the next step is likely to have: a token of each, and as many drafts as the last.
  int32_t rows_expected() const;

 private:
  int32_t draft_rows_max() const;
  void choose(Step& step) const;
  void hold_callers(Step& step, int32_t prompt_tokens_max);
  int32_t hold(std::span<Slice> group, const Share& caller, int32_t excess);
  void make_room(Step& step);

  OpenSequences& open_;
  Admission& admission_;
  std::vector<Slice*> turns_;  // Scratch.
};

}  // namespace weir::sched
