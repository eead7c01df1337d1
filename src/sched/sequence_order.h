// In what order sequences come to their turns, within a caller and where callers do not matter.
//
// Threads: the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/sequence.h"

namespace weir::sched {

// How many prompt tokens of those after it a prompt lets pass for each of its own. 4: under a
// flood of short prompts a long one takes at most five times what it would take alone.
inline constexpr int32_t kPatience = 4;
// For how much of the output still allowed memory must be free at admission: a quarter, and never
// more than a common answer has (256 tokens, 8 blocks). Most answers end far before max_tokens,
// which is the rest of the context unless the client says less; the others may cost a preemption.
inline constexpr int32_t kOutputShareDivisor = 4;
inline constexpr int32_t kOutputShareMax = 256;

inline bool precedes(const Sequence* a, const Sequence* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

inline int32_t tokens_left(const Sequence* seq) { return seq->length - seq->computed; }

// Enough prompt tokens of those after it have passed this one.
inline bool due(const Sequence* seq) {
  return seq->passed_tokens >= int64_t{kPatience} * tokens_left(seq);
}

// The order of prompts of one priority: those that are due, by arrival; then those with the fewest
// tokens left.
inline bool goes_first(const Sequence* a, const Sequence* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (due(a) != due(b)) return due(a);
  if (!due(a) && tokens_left(a) != tokens_left(b)) return tokens_left(a) < tokens_left(b);
  return precedes(a, b);
}

// The blocks that must be available before `seq` is admitted, or that it may still ask for.
inline int32_t blocks_wanted(const Sequence* seq) {
  const int32_t output_left = seq->limit - 1 - seq->length;  // The last token needs no memory.
  const int32_t share = (output_left + kOutputShareDivisor - 1) / kOutputShareDivisor;
  return kv::blocks_for(seq->length + std::min(share, kOutputShareMax));
}

// Of those, what a running sequence has not taken yet.
inline int32_t blocks_promised(const Sequence* seq) {
  return std::max(0, blocks_wanted(seq) - seq->memory.blocks());
}

}  // namespace weir::sched
