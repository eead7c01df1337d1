// Submission and removal, admission, and which sequences give way to which.
#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "sched/scheduler.h"

namespace weir::sched {

namespace {

// Keeps the order. Lists are short, and a move of pointers is cheap.
void insert_in_order(std::vector<Sequence*>& list, Sequence* seq) {
  list.insert(std::ranges::upper_bound(list, seq, precedes), seq);
}

void take_out(std::vector<Sequence*>& list, Sequence* seq) { CHECK(std::erase(list, seq) == 1); }

// The blocks that a running sequence has or may still ask for.
int32_t claim(const Sequence* seq) { return std::max(seq->memory.blocks(), blocks_wanted(seq)); }

}  // namespace

void Scheduler::submit(Sequence* seq) {
  CHECK(seq->state == Sequence::State::kFree);
  CHECK(seq->length > 0 && seq->length < seq->limit && seq->limit - 1 <= tokens_max());
  CHECK(seq->memory.empty() && seq->computed == 0 && seq->known == seq->length);
  CHECK(std::ssize(waiting_) + std::ssize(running_) < limits_.queue_max);
  seq->state = Sequence::State::kWaiting;
  seq->arrival = ++arrivals_;
  seq->passed_tokens = 0;
  insert_in_order(waiting_, seq);
  waiting_blocks_ += blocks_wanted(seq);
  seq->share = shares_.enter(seq->request->caller);
  seq->marked_from =
      limits_.prompts_differ ? seq->prompt_length : std::numeric_limits<int32_t>::max();
}

void Scheduler::remove(Sequence* seq) {
  switch (seq->state) {
    case Sequence::State::kWaiting:
      waiting_blocks_ -= blocks_wanted(seq);
      take_out(waiting_, seq);
      break;
    case Sequence::State::kRunning:
      release(seq);
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
  shares_.leave(*std::exchange(seq->share, nullptr));
}

void Scheduler::extend(Sequence* seq) {
  CHECK(seq->known >= seq->length && seq->known < seq->limit);
  const bool waiting = seq->state == Sequence::State::kWaiting;
  if (waiting) waiting_blocks_ -= blocks_wanted(seq);
  seq->length = seq->known;
  if (waiting) waiting_blocks_ += blocks_wanted(seq);
}

void Scheduler::settle(Sequence* seq, int32_t drafts, int32_t taken) {
  CHECK(drafts >= 0 && taken >= 0 && taken <= drafts);
  // One that has given way, or has all of its rows planned, remembers nothing.
  if (seq->unsettled == 0) return;
  seq->unsettled -= drafts;
  seq->computed += taken;
  seq->length = std::max(seq->length, seq->computed + 1);  // What a grammar has forced is in it.
}

void Scheduler::admit() {
  int32_t promised = promised_blocks();
  while (!waiting_.empty() && std::ssize(running_) < limits_.running_max) {
    Sequence* seq = next_waiting(promised);
    if (seq->known != seq->length) break;  // It has given way in this very plan.
    blocks_lack_ = !try_admit(seq, promised);
    if (blocks_lack_) break;
    promised += blocks_promised(seq);
  }
}

int32_t Scheduler::promised_blocks() const {
  int32_t promised = 0;
  for (const Sequence* seq : running_) promised += blocks_promised(seq);
  return promised;
}

// Among several callers that with the fewest running sequences goes first, then that with more
// credit; then, as within a caller, the first, or while there is memory for all the shortest.
Sequence* Scheduler::next_waiting(int32_t promised) const {
  const bool blocks_for_all = waiting_blocks_ + promised <= memory_.available();
  const auto before = [&](const Sequence* a, const Sequence* b) {
    return blocks_for_all ? goes_first(a, b) : precedes(a, b);
  };
  if (!shares_.several())
    return blocks_for_all ? *std::ranges::min_element(waiting_, before) : waiting_.front();
  return *std::ranges::min_element(waiting_, [&](const Sequence* a, const Sequence* b) {
    if (a->priority != b->priority || a->share == b->share) return before(a, b);
    if (a->share->running != b->share->running) return a->share->running < b->share->running;
    const int32_t rank_a = shares_.rank(*a->share), rank_b = shares_.rank(*b->share);
    return rank_a != rank_b ? rank_a > rank_b : before(a, b);
  });
}

bool Scheduler::try_admit(Sequence* seq, int32_t promised) {
  CHECK(seq->known == seq->length);  // Preempted a plan ago at least.
  seq->prefill_end = seq->length;
  memory_.begin(seq->memory, seq->salt, seq->prompt_length);
  if (seq->preemptions == 0) seq->matched_tokens = 0;
  match(seq);
  if (blocks_wanted(seq) - seq->memory.blocks() + promised > memory_.available()) {
    release(seq);
    return false;
  }
  waiting_blocks_ -= blocks_wanted(seq);
  take_out(waiting_, seq);
  insert_in_order(running_, seq);
  ++seq->share->running;
  seq->state = Sequence::State::kRunning;
  return true;
}

// Where places or memory lack, sequences of callers that have more of them give way.
void Scheduler::exchange() {
  const bool places_lack = std::ssize(running_) == limits_.running_max;
  if (!places_lack && !blocks_lack_) return;
  while (!waiting_.empty()) {
    Sequence* const seq = next_waiting(promised_blocks());
    if (seq->known != seq->length || !exchange_for(seq)) return;
  }
}

// False if `seq` needs nobody's place or memory, or does not get them.
bool Scheduler::exchange_for(Sequence* seq) {
  tally();
  victims_.clear();
  const int32_t promised = promised_blocks();
  int32_t places = limits_.running_max - static_cast<int32_t>(running_.size());
  int32_t blocks = memory_.available() - promised - blocks_wanted(seq);
  while (places <= 0 || blocks < 0) {
    Sequence* const victim = next_victim(seq, /*for_place=*/places <= 0);
    if (!victim) return false;
    victims_.push_back(victim);
    --victim->share->places;
    victim->share->claims -= claim(victim);
    ++places;
    blocks += memory_.own_blocks(victim->memory) + blocks_promised(victim);
  }
  if (victims_.empty()) return false;
  for (Sequence* const victim : victims_) preempt(victim);
  CHECK(try_admit(seq, promised_blocks()));  // More is free than was counted on, if anything.
  return true;
}

// What each caller that runs or waits has, before anybody gives way.
void Scheduler::tally() {
  for (const auto* list : {&running_, &waiting_})
    for (const Sequence* seq : *list) {
      seq->share->places = seq->share->running;
      seq->share->claims = 0;
    }
  for (const Sequence* seq : running_) seq->share->claims += claim(seq);
}

// The next one to give way to `seq`: the last of the caller that has most, if that keeps more than
// the other then has. Null: there is none.
Sequence* Scheduler::next_victim(const Sequence* seq, bool for_place) const {
  Sequence* victim = nullptr;
  for (Sequence* other : running_ | std::views::drop(1) | std::views::reverse) {
    const Share& share = *other->share;
    if (other->priority < seq->priority) break;
    if (other->in_slab || &share == seq->share) continue;
    const bool keeps_enough = for_place
                                  ? share.places > seq->share->places + 1
                                  : share.claims - claim(other) >= seq->share->claims + claim(seq);
    if (!keeps_enough || std::ranges::find(victims_, other) != victims_.end()) continue;
    const bool has_most = !victim || (for_place ? share.places > victim->share->places
                                                : share.claims > victim->share->claims);
    if (has_most) victim = other;
  }
  return victim;
}

// Of those that are not in a slab, whose memory is being written to, and of the worst priority: the
// last of the caller that may ask for most.
Sequence* Scheduler::last_of_largest() {
  if (shares_.several()) tally();
  Sequence* last = nullptr;
  for (Sequence* seq : running_ | std::views::reverse) {
    if (seq->in_slab) continue;
    const bool first = seq == running_.front();
    if (last && (first || seq->priority != last->priority || !shares_.several())) break;
    if (!last || seq->share->claims > last->share->claims) last = seq;
  }
  CHECK(last != nullptr);
  CHECK(last != running_.front() || running_.size() > 1);  // Alone, every sequence fits.
  return last;
}

void Scheduler::preempt(Sequence* seq) {
  take_out(running_, seq);
  release(seq);
  --seq->share->running;
  seq->state = Sequence::State::kWaiting;
  ++seq->preemptions;
  ++preemptions_;
  waiting_blocks_ += blocks_wanted(seq);
  insert_in_order(waiting_, seq);
}

}  // namespace weir::sched
