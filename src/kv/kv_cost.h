// KvCost: what keys and values of so many tokens take, and how many tokens so many bytes hold.
// Pages of windows, states of running sequences (not their checkpoints), and what the engine keeps
// of a page beside its memory, are counted in.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/layout.h"

namespace weir::kv {

class KvCost {
 public:
  // `state_bytes`: of one sequence, in all layers; `rows_max`: tokens that are computed at once;
  // `loads`: texts that come from disk at once.
  KvCost(std::vector<MemoryLayout::Group> groups, int64_t state_bytes, int32_t rows_max,
         int32_t loads = 0)
      : groups_(std::move(groups)), state_bytes_(state_bytes), rows_max_(rows_max), loads_(loads) {}

  // The memory of `blocks` blocks of 32 tokens, where `running` sequences decode at once.
  int64_t bytes(int32_t blocks, int32_t running) const;
  // The most blocks that take no more than `bytes`.
  int32_t blocks_within(int64_t bytes, int32_t running) const;
  // The pages of each group.
  std::vector<int32_t> page_counts(int32_t blocks, int32_t running) const;
  // The memory of so many pages of a group.
  int64_t bytes_of(size_t group, int32_t pages) const;

 private:
  std::vector<MemoryLayout::Group> groups_;
  int64_t state_bytes_;
  int32_t rows_max_;
  int32_t loads_;
};

}  // namespace weir::kv
