// BlockTable: the pages of one sequence in order, from position 0. Its memory is fixed and its
// entries outlive clear() until others are appended: a step that still runs may be reading them.
//
// Threads: one writer. Others may read through data() entries that were there when they were given
// the pointer, as long as the writer does not append after a clear().
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "kv/page_pool.h"

namespace weir::kv {

class BlockTable {
 public:
  // Takes memory; what was in the table is lost.
  void reserve(int32_t capacity) {
    entries_ = std::make_unique_for_overwrite<PageId[]>(static_cast<size_t>(capacity));
    capacity_ = capacity;
    size_ = 0;
  }

  int32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const PageId* data() const { return entries_.get(); }
  std::span<const PageId> pages() const { return {data(), static_cast<size_t>(size_)}; }
  PageId operator[](int32_t index) const { return entries_[static_cast<size_t>(index)]; }
  PageId last() const { return empty() ? -1 : (*this)[size_ - 1]; }

  // Room for `count` more, to be filled in.
  std::span<PageId> append(int32_t count) {
    CHECK(count >= 0 && count <= capacity_ - size_);
    const std::span<PageId> added{entries_.get() + size_, static_cast<size_t>(count)};
    size_ += count;
    return added;
  }
  void clear() { size_ = 0; }

 private:
  std::unique_ptr<PageId[]> entries_;
  int32_t capacity_ = 0;
  int32_t size_ = 0;
};

}  // namespace weir::kv
