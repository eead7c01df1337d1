// What sequences have of memory, in blocks: what they ask for before they are admitted, what may
// still come, what they share.
//
// Sharing. A block enters the prefix cache as soon as the step that fills it is planned. It is not
// read too early: the steps run in order, and blocks cached by one plan are first looked up by the
// next, whose step runs later. For the same reason memory is given back while a step still uses it:
// its next owner writes to it in a later step.
//
// Threads: the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kv/sequence_memory.h"
#include "sched/step.h"

namespace weir::sched {

// For how much of the output still allowed memory must be free at admission: a quarter, and never
// more than a common answer has (256 tokens, 8 blocks). Most answers end far before max_tokens,
// which is the rest of the context unless the client says less; the others may cost a preemption.
inline constexpr int32_t kOutputShareDivisor = 4;
inline constexpr int32_t kOutputShareMax = 256;

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
int32_t blocks_promised(std::span<Sequence* const> running);

// What the prompts of running sequences have not taken yet of their own blocks.
int32_t blocks_reserved(std::span<Sequence* const> running);

// The blocks that a slice still needs.
inline int32_t blocks_missing(const Slice& slice) {
  return std::max(0, kv::blocks_for(slice.end()) - slice.seq->memory.blocks());
}

// Takes what others have computed of its tokens.
void match(kv::SequenceMemory& memory, Sequence* seq);
// Others may take what is known of its tokens.
void share(kv::SequenceMemory& memory, Sequence* seq);
// Gives everything back.
void release(kv::SequenceMemory& memory, Sequence* seq);

// A slice of the step computes, at least in part, the block that `seq` needs next, or leaves states
// with which it would go on.
bool computed_in_step(const kv::SequenceMemory& memory, const Sequence* seq, const Step& step);

}  // namespace weir::sched
