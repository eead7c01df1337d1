// In what order sequences come to their turns, within a caller and where callers do not matter.
//
// Threads: the engine thread.
#pragma once

#include <cstdint>

#include "sched/sequence.h"

namespace weir::sched {

// How many prompt tokens of those after it a prompt lets pass for each of its own before it is due.
inline constexpr int32_t kPatience = 4;

inline bool precedes(const Sequence* a, const Sequence* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

inline int32_t tokens_left(const Sequence* seq) { return seq->length - seq->computed; }

// Enough prompt tokens of those after it have passed this one.
inline bool due(const Sequence* seq) {
  return seq->passed_tokens >= int64_t{kPatience} * tokens_left(seq);
}

// The order in which prompts are computed.
inline bool shorter(const Sequence* a, const Sequence* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (tokens_left(a) != tokens_left(b)) return tokens_left(a) < tokens_left(b);
  return precedes(a, b);
}

// The order in which they are given places: within a priority those that are due, by arrival, come
// before the others.
inline bool goes_first(const Sequence* a, const Sequence* b) {
  if (a->priority != b->priority || (!due(a) && !due(b))) return shorter(a, b);
  return due(a) != due(b) ? due(a) : precedes(a, b);
}

}  // namespace weir::sched
