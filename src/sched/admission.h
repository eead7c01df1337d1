// Admission: which waiting sequences begin to run, and which running ones give way.
//
// A sequence is admitted when the blocks of its prompt and of a share of its output are available,
// in order; only while there are blocks for all that wait, the shortest of a priority goes first.
// So none is admitted while one before it waits for memory. When a sequence needs a block and none
// is available, the last one gives all of its own back and waits; the full ones go to the prefix
// cache, so that little is computed again.
//
// Callers (shares.h), where there are several of one priority. The one with the fewest running
// sequences goes first, then that with more credit. If it finds no place or no memory, and another
// caller would keep more running than it then has (of blocks: at least as many), sequences of the
// one that has most give way, the last first. So callers come to have equally many, and none gives
// way twice for one arrival. The sequence that gives its blocks back when there are too few is the
// last of the caller that may ask for most.
//
// Of different adapters running sequences have so many at most (Limits::adapters_max). One whose
// adapter would be one more waits, and those after it as well: none is passed for ever.
//
// Where blocks are kept on disk, a sequence whose blocks are looked for or loaded is passed until
// they are there: then it has its turn as before.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariant: the first running sequence is never preempted for another one, but for one in a slab:
// it comes to its end, whatever the others do.
#pragma once

#include <span>
#include <vector>

#include "sched/open_sequences.h"

namespace weir::sched {

class Admission {
 public:
  // `open` outlives it.
  explicit Admission(OpenSequences& open);

  // In this order, once a plan. First: where places or memory lack, sequences of callers that have
  // more of them give way.
  void exchange();
  // As often as memory lacks for what is planned: one sequence gives way, and is returned. Null:
  // none can, and memory comes when a load from disk has ended (disk_loads.h).
  Sequence* give_way();
  // Admits those that have a turn, a place and memory; none where one gave way.
  void admit();

 private:
  Sequence* next_waiting(int32_t promised) const;
  std::span<Sequence* const> admissible() const;
  bool knows_where_to_go_on(const Sequence* seq) const;
  bool has_adapter_room(const Sequence* seq) const;
  bool try_admit(Sequence* seq, int32_t promised);
  bool exchange_for(Sequence* seq);
  Sequence* next_victim(const Sequence* seq, bool for_place) const;
  Sequence* last_of_largest();
  void tally();

  OpenSequences& open_;
  bool blocks_lack_ = false;        // The last plan left a sequence waiting for memory.
  std::vector<Sequence*> victims_;  // Scratch,
  mutable std::vector<Sequence*> admissible_;  // likewise.
};

}  // namespace weir::sched
