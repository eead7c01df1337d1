#include "sched/open_sequences.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "sched/cross_fills.h"
#include "sched/disk_loads.h"
#include "sched/sequence_blocks.h"
#include "sched/sequence_order.h"

namespace weir::sched {

namespace {

// Keeps the order. Lists are short, and a move of pointers is cheap.
void insert_in_order(std::vector<Sequence*>& list, Sequence* seq) {
  list.insert(std::ranges::upper_bound(list, seq, precedes), seq);
}

void take_out(std::vector<Sequence*>& list, Sequence* seq) { CHECK(std::erase(list, seq) == 1); }

}  // namespace

OpenSequences::OpenSequences(const Limits& limits_in, kv::SequenceMemory& memory_in)
    : limits(limits_in), memory(memory_in), shares(limits.queue_max) {
  CHECK(limits.running_max > 0);
  CHECK(limits.running_max <= limits.step_tokens_max);  // Every decoder fits in every step.
  CHECK(limits.running_max <= limits.queue_max);
  running_.reserve(static_cast<size_t>(limits.running_max));
  waiting_.reserve(static_cast<size_t>(limits.queue_max));
}

void OpenSequences::submit(Sequence* seq) {
  CHECK(seq->state == Sequence::State::kFree);
  CHECK(seq->memory.empty() && seq->computed == 0 && seq->known == seq->length);
  CHECK(std::ssize(waiting_) + std::ssize(running_) < limits.queue_max);
  seq->state = Sequence::State::kWaiting;
  seq->arrival = ++arrivals_;
  seq->on_disk = disk != nullptr ? Sequence::OnDisk::kUnknown : Sequence::OnDisk::kKnown;
  seq->passed_tokens = 0;
  insert_in_order(waiting_, seq);
  waiting_blocks_ += blocks_wanted(seq);
  seq->share = shares.enter(seq->request->caller);
  seq->marked_from = limits.prompts_differ_from
                         ? std::max(seq->prompt_length, *limits.prompts_differ_from)
                         : std::numeric_limits<int32_t>::max();
}

void OpenSequences::remove(Sequence* seq) {
  switch (seq->state) {
    case Sequence::State::kWaiting:
      waiting_blocks_ -= blocks_wanted(seq);
      take_out(waiting_, seq);
      break;
    case Sequence::State::kRunning:
      release(memory, seq);
      take_out(running_, seq);
      --seq->share->running;
      break;
    case Sequence::State::kPlanned:
      break;
    case Sequence::State::kFree:
    case Sequence::State::kEnded:
      CHECK(false);
  }
  seq->state = Sequence::State::kEnded;
  shares.leave(*std::exchange(seq->share, nullptr));
}

void OpenSequences::extend(Sequence* seq) {
  CHECK(seq->known >= seq->length && seq->known < seq->limit);
  const bool waiting = seq->state == Sequence::State::kWaiting;
  if (waiting) waiting_blocks_ -= blocks_wanted(seq);
  seq->length = seq->known;
  if (waiting) waiting_blocks_ += blocks_wanted(seq);
}

// The length of an answer is known without its tokens: no row after its last one is wasted.
void OpenSequences::begin_plan() {
  ++plan;
  const auto planned = [](const Sequence* seq) {
    return seq->length == seq->limit && !seq->in_slab;
  };
  for (Sequence* seq : running_) {
    if (!planned(seq)) continue;
    release(memory, seq);
    --seq->share->running;
    seq->state = Sequence::State::kPlanned;
  }
  std::erase_if(running_, planned);
  for (Sequence* seq : running_)
    if (!seq->in_slab) memory.leave(seq->memory, seq->computed);
}

void OpenSequences::start(Sequence* seq) {
  CHECK(std::ssize(running_) < limits.running_max);
  waiting_blocks_ -= blocks_wanted(seq);
  take_out(waiting_, seq);
  insert_in_order(running_, seq);
  ++seq->share->running;
  seq->state = Sequence::State::kRunning;
}

void OpenSequences::preempt(Sequence* seq) {
  seq->gave_way = plan;
  take_out(running_, seq);
  release(memory, seq);
  --seq->share->running;
  seq->state = Sequence::State::kWaiting;
  ++seq->preemptions;
  ++preemptions_;
  waiting_blocks_ += blocks_wanted(seq);
  insert_in_order(waiting_, seq);
}

void OpenSequences::check() const {
  CHECK(std::ranges::is_sorted(running_, precedes) && std::ranges::is_sorted(waiting_, precedes));
  CHECK(std::ssize(running_) <= limits.running_max);
  std::vector<const kv::Holding*> holdings;
  for (const Sequence* seq : running_) {
    CHECK(seq->state == Sequence::State::kRunning && seq->share != nullptr);
    CHECK(std::ranges::count(running_, seq->share, &Sequence::share) == seq->share->running);
    CHECK(seq->computed < seq->length && seq->length <= seq->limit && seq->known <= seq->length);
    CHECK(seq->memory.blocks() >= kv::blocks_for(seq->computed + seq->unsettled));
    const int32_t shared = seq->memory.shared_blocks() * kv::kPageTokens;
    CHECK(shared <= seq->known && (memory.has_states() || shared <= seq->computed));
    CHECK((seq->memory.cross() >= 0) == (seq->heard != nullptr));
    CHECK(seq->computed == 0 || seq->heard == nullptr || memory.cross_filled(seq->memory) ||
          seq->prefilling());
    holdings.push_back(&seq->memory);
  }
  if (disk != nullptr) disk->add_holdings(holdings);
  int64_t waiting_blocks = 0;
  for (const Sequence* seq : waiting_) {
    CHECK(seq->state == Sequence::State::kWaiting && seq->memory.empty() && seq->computed == 0);
    waiting_blocks += blocks_wanted(seq);
  }
  CHECK(waiting_blocks == waiting_blocks_);
  memory.check(holdings, fills != nullptr ? fills->filling() : -1);
  CHECK(memory.available() >= blocks_reserved(running_));
}

}  // namespace weir::sched
