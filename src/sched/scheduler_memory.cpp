// The memory of sequences: sharing it, giving it back, and the check of the whole.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "sched/scheduler.h"

namespace weir::sched {

namespace {

// The tokens of `seq` whose memory may come from the prefix cache. The last token is always
// computed: its logits are wanted.
int32_t matchable_tokens(const Sequence* seq) { return seq->length - 1; }

}  // namespace

void Scheduler::forget_shared() {
  memory_.forget_shared();
  for (Sequence* seq : running_) kv::SequenceMemory::stop_sharing(seq->memory);
}

int32_t Scheduler::reserved() const {
  int32_t blocks = 0;
  for (const Sequence* seq : running_)
    blocks += std::max(0, kv::blocks_for(seq->prefill_end) - seq->memory.blocks());
  return blocks;
}

void Scheduler::release(Sequence* seq) {
  share(seq);
  memory_.release(seq->memory);
  seq->computed = seq->unsettled = 0;
}

// True if a slice of the step computes, at least in part, the block that `seq` needs next, or
// states with which it would go on.
bool Scheduler::computed_in_step(const Sequence* seq, const Step& step) const {
  const int32_t begin =
      std::max(seq->computed / kv::kPageTokens, seq->memory.shared_blocks()) * kv::kPageTokens;
  const int32_t end = begin + kv::kPageTokens;
  if (seq->whole_prompt) return false;
  for (const Slice& slice : step.slices) {
    const Sequence* other = slice.seq;
    const int32_t slice_end = slice.first + slice.count;
    if (memory_.leaves_for(other->memory, slice.first, slice_end, seq->memory, seq->computed))
      return true;
    if (end > matchable_tokens(seq)) continue;
    if (slice.first >= end || slice_end <= begin) continue;
    if (other->known < end || !(other->salt == seq->salt) || !other->memory.sharing()) continue;
    // Equal keys stand for equal tokens before this block.
    int32_t equal = other->memory.same_chain(seq->memory) ? begin : 0;
    while (equal < end && other->key(equal) == seq->key(equal)) ++equal;
    if (equal == end) return true;
  }
  return false;
}

// What others have computed of its tokens.
void Scheduler::match(Sequence* seq) {
  if (seq->whole_prompt) return;
  const int32_t computed = memory_.match(seq->memory, *seq, seq->computed, matchable_tokens(seq));
  if (seq->preemptions == 0) seq->matched_tokens += computed - seq->computed;
  seq->computed = computed;
}

void Scheduler::share(Sequence* seq) {
  memory_.share(seq->memory, *seq, std::min(seq->known, seq->computed));
}

void Scheduler::check() const {
  CHECK(std::ranges::is_sorted(running_, precedes) && std::ranges::is_sorted(waiting_, precedes));
  CHECK(std::ssize(running_) <= limits_.running_max);
  std::vector<const kv::Holding*> holdings;
  for (const Sequence* seq : running_) {
    CHECK(seq->state == Sequence::State::kRunning && seq->share != nullptr);
    CHECK(std::ranges::count(running_, seq->share, &Sequence::share) == seq->share->running);
    CHECK(seq->computed < seq->length && seq->length <= seq->limit && seq->known <= seq->length);
    CHECK(seq->memory.blocks() >= kv::blocks_for(seq->computed + seq->unsettled));
    const int32_t shared = seq->memory.shared_blocks() * kv::kPageTokens;
    CHECK(shared <= seq->known && (memory_.has_states() || shared <= seq->computed));
    holdings.push_back(&seq->memory);
  }
  int64_t waiting_blocks = 0;
  for (const Sequence* seq : waiting_) {
    CHECK(seq->state == Sequence::State::kWaiting && seq->memory.empty() && seq->computed == 0);
    waiting_blocks += blocks_wanted(seq);
  }
  CHECK(waiting_blocks == waiting_blocks_);
  memory_.check(holdings);
  CHECK(memory_.available() >= reserved());
}

}  // namespace weir::sched
