#include "kv/layout.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace weir::kv {

namespace {

// Heads and pages begin at cache lines: kernels read them with full vectors.
constexpr int64_t kLineBytes = 64;

// The prefix cache has pages of a window for one in so many blocks. A remembered text needs those
// of the last window before each place where another may go on: texts of eight windows and more
// keep all that they need for their end.
constexpr int32_t kCachedDivisor = 8;

int64_t whole_lines(int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

// A head's K, [k_dim][page_keys], and V, [page_keys][v_dim], unless that is in K; in whole lines.
int64_t head_bytes(const PagedNeed& need, kernels::FloatType type) {
  const int64_t values = need.values_in_keys ? 0 : need.v_dim;
  const int64_t bytes = (need.k_dim + values) * need.page_keys() * element_bytes(type);
  return whole_lines(bytes);
}

bool sensible(const PagedNeed& need) {
  // Without values it is a page's own: numbers that no row attends to.
  const bool values = need.v_dim > 0 || (need.v_dim == 0 && need.tokens_per_key == kPageTokens);
  return need.heads > 0 && need.k_dim > 0 && values && need.window >= 0 &&
         need.tokens_per_key > 0 && (need.tokens_per_key == 1 || need.window == 0) &&
         (!need.values_in_keys ||
          (need.v_dim <= need.k_dim && need.k_dim <= kernels::kValuesInKeysMax));
}

// Distinct windows, the widest first, as many as there are groups for.
std::vector<int32_t> windows_of(const std::vector<MemoryNeed>& needs) {
  std::vector<int32_t> windows;
  for (const MemoryNeed& need : needs)
    if (const auto* paged = std::get_if<PagedNeed>(&need); paged != nullptr && paged->window > 0)
      windows.push_back(paged->window);
  std::ranges::sort(windows, std::greater<>());
  const auto repeated = std::ranges::unique(windows);
  windows.erase(repeated.begin(), repeated.end());
  windows.resize(std::min(windows.size(), size_t{kGroupsMax - 1}));
  return windows;
}

}  // namespace

Result<MemoryLayout> MemoryLayout::make(std::vector<MemoryNeed> needs, kernels::FloatType type,
                                        int32_t tape_tokens) {
  if (type != kernels::FloatType::kF16 && type != kernels::FloatType::kF32)
    return fail(ErrorCode::kConfig, "KV cache: expected type f16 or f32");
  MemoryLayout layout;
  layout.type_ = type;
  layout.tape_tokens_ = tape_tokens;
  layout.groups_.push_back({});
  for (const int32_t window : windows_of(needs)) layout.groups_.push_back({.window = window});
  for (size_t i = 0; i < needs.size(); ++i) {
    layout.group_of_.push_back(0);
    if (const auto* state = std::get_if<StateNeed>(&needs[i]); state && state->bytes <= 0)
      return fail(ErrorCode::kConfig, "KV cache: layer " + std::to_string(i) +
                                          ": expected a state of some bytes, found " +
                                          std::to_string(state->bytes));
    const auto* paged = std::get_if<PagedNeed>(&needs[i]);
    if (paged == nullptr) continue;
    if (!sensible(*paged))
      return fail(ErrorCode::kConfig,
                  "KV cache: layer " + std::to_string(i) +
                      ": expected heads and dimensions, found " + std::to_string(paged->heads) +
                      " heads, keys of " + std::to_string(paged->k_dim) + ", values of " +
                      std::to_string(paged->v_dim) + ", window " + std::to_string(paged->window) +
                      ", a key for " + std::to_string(paged->tokens_per_key) + " tokens");
    if (paged->window > 0)
      while (layout.group_of_[i] + 1 < std::ssize(layout.groups_) &&
             layout.groups_[static_cast<size_t>(layout.group_of_[i] + 1)].window >= paged->window)
        ++layout.group_of_[i];
    layout.groups_[static_cast<size_t>(layout.group_of_[i])].page_bytes +=
        paged->heads * head_bytes(*paged, type);
  }
  layout.needs_ = std::move(needs);
  return layout;
}

kernels::KvPages MemoryLayout::pages_of(int32_t layer) const {
  kernels::KvPages pages;
  pages.type = type_;
  const auto* paged = std::get_if<PagedNeed>(&needs_[static_cast<size_t>(layer)]);
  if (paged == nullptr) return pages;
  pages.head_bytes = head_bytes(*paged, type_);
  pages.page_bytes = paged->heads * pages.head_bytes;
  pages.kv_heads = paged->heads;
  pages.k_dim = paged->k_dim;
  pages.v_dim = paged->v_dim;
  pages.values_in_keys = paged->values_in_keys;
  return pages;
}

int64_t MemoryLayout::state_bytes(int32_t layer) const {
  const auto* state = std::get_if<StateNeed>(&needs_[static_cast<size_t>(layer)]);
  return state == nullptr ? 0 : whole_lines(state->bytes) + tape_tokens_ * tape_bytes(layer);
}

int64_t MemoryLayout::tape_bytes(int32_t layer) const {
  const auto* state = std::get_if<StateNeed>(&needs_[static_cast<size_t>(layer)]);
  return state == nullptr ? 0 : whole_lines(state->tape_bytes);
}

int64_t MemoryLayout::state_bytes() const {
  int64_t bytes = 0;
  for (int32_t layer = 0; layer < layer_count(); ++layer) bytes += state_bytes(layer);
  return bytes;
}

std::vector<int32_t> page_counts(std::span<const MemoryLayout::Group> groups, int32_t blocks,
                                 const MemoryLoad& load) {
  std::vector<int32_t> counts;
  for (const MemoryLayout::Group& group : groups) {
    const int64_t held = group.window == 0 ? std::numeric_limits<int32_t>::max()
                                           : window_pages_held(group.window, load);
    counts.push_back(
        static_cast<int32_t>(std::min<int64_t>(blocks, held + blocks / kCachedDivisor)));
  }
  return counts;
}

}  // namespace weir::kv
