// MappingGuard: keeps the process alive where a mapped file loses its end, or cannot be read, while
// it is in use. The kernel answers a read of such a page with SIGBUS; in a guarded mapping the rest
// of the mapping becomes zeros and is marked as lost. A reader goes on with zeros, and throws away
// what came of them once lost() says so.
//
// Threads: any. The handler of the signal reads the table of guarded mappings wherever a thread may
// be, so the table has a fixed size and is made of atomics.
//
// Invariants:
// (1) a fault outside of guarded mappings does what it did before install();
// (2) lost() is true before a thread can have read a zero that the file did not have.
#pragma once

#include <cstddef>
#include <span>

namespace weir {

class MappingGuard {
 public:
  // Mappings at once: the shards of the largest checkpoint that is read (4,096), and a few files
  // beside them. A mapping beyond is not guarded.
  static constexpr int kMappingsMax = 4096 + 64;

  // Handles SIGBUS from now on, in the whole process. Calls after the first do nothing.
  static void install();

  // Guards these bytes, which are whole pages of a mapping of its own, as long as it lives.
  explicit MappingGuard(std::span<const std::byte> mapping);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Some of the mapping's pages are gone.
  bool lost() const;
  // Pages of some mapping are gone, or were while it was guarded: one relaxed load.
  static bool any_lost();

 private:
  int place_ = -1;  // In the table; -1: not guarded.
};

}  // namespace weir
