// CrossSlots: which slot holds the keys and values of what (CrossNeed): of which sound, for example.
// Sequences that attend to the same share one slot. When none of them holds it any more it stays as
// it is, for those to come, until another needs it: the least recently used goes first.
//
// A slot may be given back and taken for another sound while a step that is planned still reads it:
// it is filled between two steps, when only rows of sequences that have ended may see the change.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) No two slots are of the same.
// (2) A slot that is held is of something, and stays so.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::kv {

// 128 bits that stand for what is attended to.
using CrossKey = std::array<uint64_t, 2>;

class CrossSlots {
 public:
  explicit CrossSlots(int32_t count) : slots_(static_cast<size_t>(count)) {}

  int32_t count() const { return static_cast<int32_t>(slots_.size()); }

  // The slot of this, held once more; which is not filled yet if none was. REQUIRES: not all are
  // held.
  int32_t take(const CrossKey& key);
  // Held once more. REQUIRES: it is held.
  void hold(int32_t slot);
  void give_back(int32_t slot);

  bool is_held(int32_t slot) const { return at(slot).holders > 0; }
  // Its keys and values are there.
  bool filled(int32_t slot) const { return at(slot).filled; }
  // REQUIRES: it is held.
  void set_filled(int32_t slot);

  // What no sequence holds is nothing's from here on: its memory may be gone.
  void forget();

  // Walks everything and checks the invariants. `holders`: of each slot.
  void check(std::span<const int32_t> holders) const;

 private:
  struct Slot {
    CrossKey key{};
    bool known = false;  // It is of that.
    bool filled = false;
    int32_t holders = 0;
    uint64_t used = 0;  // When it was last held or given back; later is larger.
  };
  Slot& at(int32_t slot) { return slots_[static_cast<size_t>(slot)]; }
  const Slot& at(int32_t slot) const { return slots_[static_cast<size_t>(slot)]; }

  std::vector<Slot> slots_;  // There are few, so they are looked through.
  int32_t held_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace weir::kv
