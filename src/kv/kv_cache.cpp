// KvCache: one buffer; a layer's pages lie one after another, so that a run of pages is a run of
// memory, and layers lie behind each other.
#include "kv/kv_cache.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::kv {

namespace {

// Heads and pages begin at cache lines: kernels read them with full vectors.
constexpr int64_t kLineBytes = 64;

int64_t element_bytes(kernels::FloatType type) { return type == kernels::FloatType::kF32 ? 4 : 2; }

// A head's K, [k_dim][32], and V, [32][v_dim]: a multiple of 64 bytes as 32 elements of 2 are.
int64_t head_bytes(const KvShape& shape, kernels::FloatType type) {
  return (int64_t{shape.k_dim} + shape.v_dim) * kernels::kPageTokens * element_bytes(type);
}
static_assert(kernels::kPageTokens * 2 % kLineBytes == 0);

int64_t layer_page_bytes(const KvShape& shape, kernels::FloatType type) {
  return shape.kv_heads * head_bytes(shape, type);
}

}  // namespace

int64_t page_bytes(const std::vector<KvShape>& layers, kernels::FloatType type) {
  int64_t bytes = 0;
  for (const KvShape& shape : layers) bytes += layer_page_bytes(shape, type);
  return bytes;
}

Result<KvCache> KvCache::create(std::vector<KvShape> layers, kernels::FloatType type,
                                int32_t page_count) {
  if (type != kernels::FloatType::kF16 && type != kernels::FloatType::kF32)
    return fail(ErrorCode::kConfig, "KV cache: expected type f16 or f32");
  if (page_count < 1)
    return fail(ErrorCode::kConfig,
                "KV cache: expected at least 1 page, found " + std::to_string(page_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    const KvShape& shape = layers[i];
    if (shape.kv_heads < 0 || (shape.kv_heads > 0 && (shape.k_dim < 1 || shape.v_dim < 1)))
      return fail(ErrorCode::kConfig, "KV cache: layer " + std::to_string(i) + " has kv_heads " +
                                          std::to_string(shape.kv_heads) + ", k_dim " +
                                          std::to_string(shape.k_dim) + ", v_dim " +
                                          std::to_string(shape.v_dim));
  }
  KvCache cache;
  WEIR_ASSIGN(cache.memory_,
              HugeBuffer::allocate(static_cast<size_t>(page_bytes(layers, type) * page_count)));
  cache.page_count_ = page_count;
  cache.page_bytes_ = kv::page_bytes(layers, type);
  cache.type_ = type;
  auto* base = reinterpret_cast<uint8_t*>(cache.memory_.data());
  for (const KvShape& shape : layers) {
    kernels::KvPages pages;
    pages.base = base;
    pages.page_bytes = layer_page_bytes(shape, type);
    pages.head_bytes = head_bytes(shape, type);
    pages.kv_heads = shape.kv_heads;
    pages.k_dim = shape.k_dim;
    pages.v_dim = shape.v_dim;
    pages.type = type;
    cache.layers_.push_back(pages);
    base += pages.page_bytes * page_count;
  }
  return cache;
}

void KvCache::give_back(int32_t first, int32_t count) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(memory_.data());
  for (const kernels::KvPages& pages : layers_)
    memory_.give_back(static_cast<size_t>(pages.base - begin + first * pages.page_bytes),
                      static_cast<size_t>(count * pages.page_bytes));
}

int32_t KvCache::pages_in_huge_page() const {
  int64_t least = static_cast<int64_t>(kHugePageBytes);
  for (const kernels::KvPages& pages : layers_)
    if (pages.page_bytes > 0) least = std::min(least, pages.page_bytes);
  return static_cast<int32_t>(static_cast<int64_t>(kHugePageBytes) / least) + 1;
}

}  // namespace weir::kv
