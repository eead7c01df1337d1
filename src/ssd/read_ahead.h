// ReadAhead: reads of experts that no layer has asked for yet. Of generated tokens those that the
// prefetcher guesses; of a long prompt the next layer's, one after another. Both only while no
// layer waits for the disk.
//
// Threads: one owner, the engine's leader. Allocates nothing after construction.
//
// Invariants:
// (1) a slot is guessed from its read's beginning until its expert is asked for, dropped, replaced,
//     or has failed; the prefetcher is told which, once;
// (2) guesses_reading_ counts the guessed slots that are reading.
#pragma once

#include <cstdint>
#include <vector>

#include "ssd/expert_cache.h"
#include "ssd/expert_catalogue.h"
#include "ssd/prefetcher.h"
#include "ssd/slot_reads.h"
#include "ssd/store_stats.h"

namespace weir::ssd {

class ReadAhead {
 public:
  // What it is given outlives it.
  ReadAhead(const ExpertCatalogue& catalogue, ExpertCache& cache, Prefetcher& prefetcher,
            SlotReads& reads, int64_t slots, StoreStats& stats);

  // What becomes of a slot, whether it was guessed or not: its expert is asked for; another one is
  // about to be read into it; its reads have ended.
  void asked(int32_t index);
  void replaced(int32_t index);
  void settled(int32_t index);

  // The prefetcher knows more: what is likely is protected, what is contradicted is taken back
  // while all of it waits. REQUIRES: all rows have been told; what none of them makes likely is
  // contradicted, and no sooner.
  void take_news();
  // A prompt's layer was routed to so many experts. One of which nearly all were asked for says the
  // same of the next one.
  void plan_prompt(int32_t layer, size_t experts);
  // Begins reads while there is room. REQUIRES: no layer waits for one. `layer`: that runs, or -1.
  void read(int32_t layer);

  // Reads of a prompt's experts that are under way at once, asked for or not: about 16 MiB of small
  // ones, twice what keeps a disk busy.
  static constexpr int32_t kReadingOfPrompts = 16;

 private:
  int64_t bytes_of(ExpertKey key) const;
  void begin(int32_t index, ExpertKey key, ReadClass read_class);
  void read_prompt(int32_t layer);
  void read_guesses(int32_t layer);

  const ExpertCatalogue& catalogue_;
  ExpertCache& cache_;
  Prefetcher& prefetcher_;
  SlotReads& reads_;
  StoreStats& stats_;
  std::vector<bool> guessed_;  // By slot.
  int32_t guesses_reading_ = 0;
  const int32_t prompt_slots_max_;
  int32_t prompt_slots_ = 0;     // Read into for the layer at hand.
  ExpertKey next_{.layer = -1};  // The next expert to be read for a prompt; -1: none.
};

}  // namespace weir::ssd
