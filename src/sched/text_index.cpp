#include "sched/text_index.h"

#include <algorithm>
#include <bit>

namespace weir::sched {

namespace {

// Heads for two places each: few keys share one, and a place of another key costs a look only.
constexpr int32_t kPlacesPerHead = 2;

}  // namespace

int32_t TextIndex::capacity_for(int64_t tokens) {
  const int64_t kept = std::clamp<int64_t>(tokens, kTailMax, kTokensMax);
  return static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(kept)));
}

size_t TextIndex::memory_bytes(int64_t tokens) {
  const auto capacity = static_cast<size_t>(capacity_for(tokens));
  return sizeof(TextIndex) + (2 * capacity + capacity / kPlacesPerHead) * sizeof(int32_t);
}

// What is not written yet is not read either, but for the heads.
TextIndex::TextIndex(int64_t tokens)
    : capacity_(capacity_for(tokens)),
      tokens_(std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(capacity_))),
      previous_(std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(capacity_))),
      heads_(std::make_unique<int32_t[]>(static_cast<size_t>(capacity_ / kPlacesPerHead))) {}

size_t TextIndex::head_of(int32_t a, int32_t b, int32_t c) const {
  // Knuth's multiplicative hash, once for each token.
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t hash = static_cast<uint32_t>(a);
  hash = (hash * kOdd) ^ static_cast<uint32_t>(b);
  hash = (hash * kOdd) ^ static_cast<uint32_t>(c);
  hash *= kOdd;
  return static_cast<size_t>(hash >> 32) & static_cast<size_t>(capacity_ / kPlacesPerHead - 1);
}

void TextIndex::clear() {
  size_ = 0;
  std::fill_n(heads_.get(), capacity_ / kPlacesPerHead, 0);
}

void TextIndex::fetch_end() const {
  __builtin_prefetch(&tokens_[at(size_)], 1);
  __builtin_prefetch(&previous_[at(size_)], 1);
}

void TextIndex::fetch_key(int32_t next) const {
  if (size_ - begin() < kKey - 1) return;
  __builtin_prefetch(&heads_[head_of(tokens_[at(size_ - 2)], tokens_[at(size_ - 1)], next)], 1);
}

void TextIndex::append(int32_t token) {
  const int32_t place = size_++;
  tokens_[at(place)] = token;
  previous_[at(place)] = 0;
  if (place - begin() < kKey - 1 || token == kNoToken) return;
  int32_t& head = heads_[head_of(tokens_[at(place - 2)], tokens_[at(place - 1)], token)];
  previous_[at(place)] = head;
  head = place + 1;
}

TextIndex::Tail TextIndex::tail() const {
  Tail tail;
  tail.count = std::min(size_ - begin(), kTailMax);
  for (int32_t i = 0; i < tail.count; ++i)
    tail.tokens[static_cast<size_t>(i)] = tokens_[at(size_ - tail.count + i)];
  return tail;
}

int32_t TextIndex::length_at(int32_t end, std::span<const int32_t> tail) const {
  const int32_t longest = std::min(end - begin(), static_cast<int32_t>(tail.size()));
  int32_t length = 0;
  while (length < longest &&
         tokens_[at(end - 1 - length)] == tail[tail.size() - 1 - static_cast<size_t>(length)])
    ++length;
  return length;
}

TextIndex::Match TextIndex::find(std::span<const int32_t> tail) const {
  Match best;
  const size_t n = tail.size();
  if (n < kKey) return best;
  int32_t next = heads_[head_of(tail[n - 3], tail[n - 2], tail[n - 1])];
  for (int32_t looks = 0; looks < kLooks && next > begin(); ++looks) {
    const int32_t end = next;
    next = previous_[at(end - 1)];
    if (end == size_) continue;
    const int32_t length = length_at(end, tail);
    if (length >= kKey && length > best.length) best = {.end = end, .length = length};
    if (best.length == static_cast<int32_t>(n)) break;
  }
  return best;
}

}  // namespace weir::sched
