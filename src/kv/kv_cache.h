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
  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }

 private:
  HugeBuffer memory_;
  std::vector<kernels::KvPages> layers_;
  int32_t page_count_ = 0;
  kernels::FloatType type_ = kernels::FloatType::kF16;
};

}  // namespace weir::kv
