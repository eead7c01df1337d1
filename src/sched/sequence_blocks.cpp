#include "sched/sequence_blocks.h"

namespace weir::sched {

namespace {

// The tokens of `seq` whose memory may come from the prefix cache. The last token is always
// computed: its logits are wanted.
int32_t matchable_tokens(const Sequence* seq) { return seq->length - 1; }

}  // namespace

int32_t blocks_promised(std::span<Sequence* const> running) {
  int32_t blocks = 0;
  for (const Sequence* seq : running) blocks += blocks_promised(seq);
  return blocks;
}

int32_t blocks_reserved(std::span<Sequence* const> running) {
  int32_t blocks = 0;
  for (const Sequence* seq : running)
    blocks += std::max(0, kv::blocks_for(seq->prefill_end) - seq->memory.blocks());
  return blocks;
}

void match(kv::SequenceMemory& memory, Sequence* seq) {
  if (seq->whole_prompt) return;
  const int32_t computed = memory.match(seq->memory, *seq, seq->computed, matchable_tokens(seq));
  if (seq->preemptions == 0) seq->matched_tokens += computed - seq->computed;
  seq->computed = computed;
}

void share(kv::SequenceMemory& memory, Sequence* seq) {
  memory.share(seq->memory, *seq, std::min(seq->known, seq->computed));
}

void release(kv::SequenceMemory& memory, Sequence* seq) {
  share(memory, seq);
  memory.release(seq->memory);
  seq->computed = seq->unsettled = seq->replays = 0;
}

bool computed_in_step(const kv::SequenceMemory& memory, const Sequence* seq, const Step& step) {
  const int32_t begin =
      std::max(seq->computed / kv::kPageTokens, seq->memory.shared_blocks()) * kv::kPageTokens;
  const int32_t end = begin + kv::kPageTokens;
  if (seq->whole_prompt) return false;
  for (const Slice& slice : step.slices) {
    const Sequence* other = slice.seq;
    const int32_t slice_end = slice.first + slice.count - slice.drafts;
    if (memory.leaves_for(other->memory, slice.first, slice_end, seq->memory, seq->computed))
      return true;
    if (end > matchable_tokens(seq)) continue;
    if (slice.first >= end || slice_end <= begin) continue;
    if (other->known < end || !(other->salt == seq->salt) || !other->memory.sharing()) continue;
    // Equal keys stand for equal tokens before this block.
    int32_t equal = other->memory.same_chain(seq->memory) ? begin : 0;
    while (equal < end && other->key(equal) == seq->key(equal)) ++equal;
    if (equal == end && same_before(other->media.get(), seq->media.get(), end)) return true;
  }
  return false;
}

}  // namespace weir::sched
