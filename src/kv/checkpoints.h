// Checkpoints: copies of what states were at ends of blocks, for the prefix cache: a sequence that
// begins as an earlier one goes on from the last of them. Without one it would begin with the first
// token, because a state cannot be cut out of a later one.
//
// A sequence leaves one every kCheckpointTokens tokens, at the end of its prompt, where its text
// has parted from others', and at the end of what it has generated so far: the last one moves with
// it. "End" is that of the last whole block before the last token, which is always computed. Each
// belongs to the entry of the prefix cache whose block it ends, and goes with it, or alone.
//
// Nothing is computed for them: the slice of a step that passes such a place brings the slot
// (MemoryView::marks), and layers copy their states on their way.
//
// Which goes first (kv/side_cache.h): those that texts have left every kCheckpointTokens tokens,
// then ends; of each kind the least recently used. So one long text does not drive out the ends of
// all others.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A slot is free, or an entry's, or held by a sequence (Use), or both of these.
// (2) What a slice reads and writes is held by its sequence until the next one is planned, or it is
//     released: so no other slice is planned to write there that might run before it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kv/block.h"
#include "kv/memory_view.h"
#include "kv/page_pool.h"
#include "kv/side_cache.h"

namespace weir::kv {

inline constexpr int32_t kCheckpointTokens = 512;
static_assert(kCheckpointTokens % kPageTokens == 0);

class Checkpoints {
 public:
  // The most marks of a slice: those of 6,656 tokens, and at ends.
  static constexpr int32_t kEndsMax = 3;
  static constexpr int32_t kMarksMax = 16;

  // What one sequence has to do with them. Slots are those of KvCache.
  struct Use {
    int32_t prompt_end = 0;  // Where they are to be left: at the end of the prompt,
    int32_t parted = 0;      // and where the texts of others that are known end; 0: nowhere.
    int32_t tail = 0;        // Where the last one lies that moves with the end; 0: nowhere.
    int32_t source = -1;     // Of the slice that was planned last; -1: none.
    int32_t next_source = -1;
    std::array<StateMark, kMarksMax> marks{};  // Of the slice that was planned last.
    int32_t count = 0;
    int32_t attached = 0;  // The first ones, which are entries' if those had none.

    std::span<const StateMark> planned() const {
      return {marks.data(), static_cast<size_t>(count)};
    }
  };

  // The slots from `first_slot` on, `pool` knows how many; `cache` is theirs. Both outlive it.
  Checkpoints(int32_t first_slot, PagePool& pool, SideCache& cache)
      : first_(first_slot), pool_(pool), cache_(cache) {}

  // A sequence begins whose prompt has so many tokens.
  static void begin(Use& use, int32_t prompt_tokens);
  // Entries with a checkpoint, by their page of the spine.
  bool has(PageId entry) const { return cache_.page_of(entry) >= 0; }
  // The sequence goes on from this entry's. REQUIRES: there is one.
  void restore(Use& use, PageId entry);
  // Its next slice is planned, with positions [begin, end): marks for what it leaves, as far as
  // there are slots. `entries`: those that the cache has of the sequence already.
  void plan(Use& use, int32_t begin, int32_t end, std::span<const PageId> entries);
  // Its next slice is planned, and leaves none.
  void plan_without(Use& use);
  // Marks at the end of one of these entries become the entries'.
  void attach(Use& use, std::span<const PageId> entries);
  // The sequence ends, or gives way.
  void release(Use& use);

  // The last position of (begin, end] where a slice of this sequence leaves a checkpoint if it can;
  // 0: none.
  static int32_t last_place(const Use& use, int32_t begin, int32_t end);

  int32_t count() const { return pool_.page_count(); }
  int32_t free_count() const { return pool_.free_count(); }
  // Counts what `uses` hold; checks invariant 1.
  void check(std::span<const Use* const> uses) const;

 private:
  using Places = std::array<int32_t, kMarksMax>;
  static int32_t places(const Use& use, int32_t begin, int32_t end, Places& found);
  static bool on_the_way(const Use& use, int32_t position) {
    return position % kCheckpointTokens == 0 && position != use.prompt_end &&
           position != use.parted;
  }
  void settle(Use& use);
  PageId take();
  PageId page(int32_t slot) const { return slot - first_; }

  const int32_t first_;
  PagePool& pool_;
  SideCache& cache_;
};

}  // namespace weir::kv
