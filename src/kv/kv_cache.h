// KvCache: the memory of the pages and states, for all layers of a model. Page p of every layer of
// a group belongs to the same block of the same sequence; slot s of every layer with a state
// belongs to the same sequence. Knows layouts, not families; which sequence holds which page and
// slot is SequenceMemory's business.
//
// Threads: built once; team members write disjoint slots and read what a barrier has published.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "kernels/ops.h"
#include "kernels/rotation.h"
#include "kv/layout.h"
#include "kv/page_memory.h"

namespace weir::kv {

class KvCache final : public PageMemory {
 public:
  // `page_counts`: of each group.
  static Result<KvCache> create(MemoryLayout layout, std::span<const int32_t> page_counts,
                                const StateSlots& slots = {.running = 1});
  // The same number for each group, so that one page table may serve them all (MemoryView).
  static Result<KvCache> create(std::vector<MemoryNeed> needs, Format format, int32_t page_count,
                                const StateSlots& slots = {.running = 1});

  // Where the layer has codes, its hot pages.
  const kernels::KvPages& layer(int32_t index) const { return layers_[static_cast<size_t>(index)]; }
  // Null: it has none.
  const kernels::CodedPages* coded(int32_t index) const {
    const kernels::CodedPages& coded = coded_[static_cast<size_t>(index)];
    return coded.page_bytes > 0 ? &coded : nullptr;
  }
  // Whose page table hot pages are found by; -1: there are none.
  int32_t hot_group() const { return layout_.hot_group(); }
  // What its tokens attend to besides (CrossNeed): the pages of all slots, and which of them are a
  // slot's, in any layer.
  const kernels::KvPages& cross(int32_t layer) const { return cross_[static_cast<size_t>(layer)]; }
  const int32_t* cross_pages(int32_t slot) const {
    return cross_numbers_.data() + int64_t{slot} * layout_.cross_pages();
  }
  int32_t layer_count() const { return layout_.layer_count(); }
  // Whose page table a layer's pages are found by.
  int32_t group_of(int32_t layer) const { return layout_.group_of(layer); }
  std::span<const PageGroup> groups() const override { return groups_; }
  const StateSlots& state_slots() const override { return slots_; }
  // A layer's state of one sequence, at a cache line. A sequence begins with zeros: what a slot
  // holds at position 0 is another's. REQUIRES: the layer has a state.
  uint8_t* state(int32_t layer, int32_t slot) const {
    const Run& states = states_[static_cast<size_t>(layer)];
    return states.base + slot * states.bytes;
  }
  // What a token has left on the tape of that state, [StateNeed::tape_bytes], at a cache line.
  // REQUIRES: token < tape_tokens().
  uint8_t* tape(int32_t layer, int32_t slot, int32_t token) const {
    return state(layer, slot + 1) - (tape_tokens() - token) * layout_.tape_bytes(layer);
  }
  int32_t tape_tokens() const override { return layout_.tape_tokens(); }
  Format format() const override { return layout_.format(); }
  int64_t bytes() const override { return static_cast<int64_t>(memory_.bytes()); }
  int32_t page_count(int32_t group) const override;
  int64_t bytes_of_page(int32_t group) const override;
  int64_t kept_bytes(int32_t group) const override;
  void give_back(int32_t group, int32_t first, int32_t count) override;
  void take(int32_t group, int32_t first, int32_t count) override;
  void copy_out(int32_t group, int32_t page, std::span<std::byte> to) const override;
  void copy_in(int32_t group, int32_t page, std::span<const std::byte> from) override;
  int32_t pages_in_huge_page(int32_t group) const override;
  void give_back_states() override;
  void give_back_cross() override;

 private:
  // Pages, or slots, one after another in one layer.
  struct Run {
    uint8_t* base = nullptr;
    int64_t bytes = 0;  // From one to the next; 0: the layer has none.
  };
  Run run_of(int32_t group, int32_t layer) const;
  int64_t kept_bytes(int32_t group, int32_t layer) const;
  void give_back(const Run& run, int32_t first, int32_t count);
  size_t offset(const Run& run, int32_t first) const;

  kernels::Rotation rotation_of(int32_t dim);

  explicit KvCache(MemoryLayout layout) : layout_(std::move(layout)) {}

  MemoryLayout layout_;
  std::vector<PageGroup> groups_;
  std::vector<kernels::KvPages> layers_;
  std::vector<kernels::CodedPages> coded_;        // By layer.
  std::vector<kernels::HeadRotation> rotations_;  // One for each dimension.
  std::vector<Run> states_;                       // By layer.
  std::vector<kernels::KvPages> cross_;  // By layer.
  std::vector<int32_t> cross_numbers_;   // Of all pages, ascending.
  StateSlots slots_;
  HugeBuffer memory_;
};

}  // namespace weir::kv
