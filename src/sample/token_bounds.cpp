#include "sample/token_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace weir::sample {

TokenBounds::TokenBounds(std::vector<int32_t> allowed, std::vector<std::vector<int32_t>> banned)
    : allowed_(std::move(allowed)), banned_(std::move(banned)) {
  std::ranges::sort(allowed_);
  allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());
  for (const std::vector<int32_t>& sequence : banned_) {
    CHECK(!sequence.empty());
    past_max_ = std::max(past_max_, sequence.size() - 1);
  }
}

void TokenBounds::intersect(std::span<uint64_t> mask) const {
  auto next = allowed_.begin();
  for (size_t word = 0; word < mask.size(); ++word) {
    uint64_t bits = 0;
    for (; next != allowed_.end() && static_cast<size_t>(*next) / 64 == word; ++next)
      bits |= uint64_t{1} << (*next % 64);
    mask[word] &= bits;
  }
}

void TokenBounds::ban(std::span<float> logits, std::span<const int32_t> past) const {
  for (const std::vector<int32_t>& sequence : banned_) {
    const std::span<const int32_t> before = std::span(sequence).first(sequence.size() - 1);
    if (before.size() > past.size()) continue;
    if (!std::ranges::equal(before, past.last(before.size()))) continue;
    const int32_t token = sequence.back();
    if (token >= 0 && static_cast<size_t>(token) < logits.size())
      logits[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

size_t TokenBounds::memory_bytes() const {
  size_t bytes = sizeof *this + allowed_.capacity() * sizeof(int32_t);
  for (const std::vector<int32_t>& sequence : banned_)
    bytes += sizeof sequence + sequence.capacity() * sizeof(int32_t);
  return bytes;
}

}  // namespace weir::sample
