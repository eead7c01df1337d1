// MemoryView: where a forward pass finds what a sequence remembers.
//
// Threads: a value. What it points to stays in place, and does not change for the positions of a
// pass, until the pass has ended.
#pragma once

#include <cstdint>

namespace weir::kv {

struct MemoryView {
  const int32_t* pages = nullptr;  // The page of each block, from position 0.
};

}  // namespace weir::kv
