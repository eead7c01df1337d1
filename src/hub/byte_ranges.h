// ByteRanges: which bytes of a file are there, as ranges that neither overlap nor touch.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "hub/transport.h"

namespace weir::hub {

class ByteRanges {
 public:
  // Sorted.
  const std::vector<ByteRange>& ranges() const { return ranges_; }
  uint64_t bytes() const;
  // The end of what is there from byte 0 on.
  uint64_t front() const;
  std::vector<ByteRange> gaps(uint64_t size) const;

  void add(ByteRange range);
  void clear() { ranges_.clear(); }

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace weir::hub
