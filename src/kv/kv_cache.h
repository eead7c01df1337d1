// KvCache: the memory behind the pages, for all layers of a model. Page p of every layer belongs to
// the same 32 tokens. Knows shapes, not families; who owns which page is PagePool's business.
//
// Threads: built once; team members write disjoint slots and read what a barrier has published.
#pragma once

#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "kernels/ops.h"

namespace weir::kv {

// What one layer stores per token. kv_heads == 0: nothing.
struct KvShape {
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;

  bool operator==(const KvShape&) const = default;
};

// Bytes of one page in all layers.
int64_t page_bytes(const std::vector<KvShape>& layers, kernels::FloatType type);

class KvCache {
 public:
  static Result<KvCache> create(std::vector<KvShape> layers, kernels::FloatType type,
                                int32_t page_count);

  const kernels::KvPages& layer(int32_t index) const { return layers_[static_cast<size_t>(index)]; }
  int32_t layer_count() const { return static_cast<int32_t>(layers_.size()); }
  int32_t page_count() const { return page_count_; }
  kernels::FloatType type() const { return type_; }
  int64_t bytes_of_page() const { return page_bytes_; }  // In all layers.
  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }

  // The memory of `count` pages from `first` on goes back to the system: they hold zeros, and take
  // memory again, when they are next written. REQUIRES: nobody reads or writes them now.
  void give_back(int32_t first, int32_t count);
  // Memory comes and goes in huge pages: how many KV pages one of those reaches over.
  int32_t pages_in_huge_page() const;

 private:
  HugeBuffer memory_;
  std::vector<kernels::KvPages> layers_;
  int32_t page_count_ = 0;
  int64_t page_bytes_ = 0;
  kernels::FloatType type_ = kernels::FloatType::kF16;
};

}  // namespace weir::kv
