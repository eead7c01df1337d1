#include "sched/admission.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "sched/disk_loads.h"
#include "sched/sequence_blocks.h"
#include "sched/sequence_order.h"

namespace weir::sched {

namespace {

// The blocks that a running sequence has or may still ask for.
int32_t claim(const Sequence* seq) { return std::max(seq->memory.blocks(), blocks_wanted(seq)); }

}  // namespace

Admission::Admission(OpenSequences& open) : open_(open) {
  victims_.reserve(static_cast<size_t>(open.limits.running_max));
  admissible_.reserve(static_cast<size_t>(open.limits.queue_max));
}

void Admission::admit() {
  int32_t promised = blocks_promised(open_.running());
  while (!blocks_lack_ && !open_.waiting().empty() &&
         std::ssize(open_.running()) < open_.limits.running_max) {
    Sequence* seq = next_waiting(promised);
    if (seq == nullptr || !knows_where_to_go_on(seq) || !has_adapter_room(seq)) return;
    blocks_lack_ = !try_admit(seq, promised);
    promised += blocks_promised(seq);
  }
}

// Among several callers that with the fewest running sequences goes first, then that with more
// credit; then, as within a caller, the first, or while there is memory for all the shortest. Null:
// all wait for the disk.
Sequence* Admission::next_waiting(int32_t promised) const {
  const std::span<Sequence* const> waiting = admissible();
  if (waiting.empty()) return nullptr;
  const Shares& shares = open_.shares;
  const bool blocks_for_all = open_.waiting_blocks() + promised <= open_.memory.available();
  const auto before = [&](const Sequence* a, const Sequence* b) {
    return blocks_for_all ? goes_first(a, b) : precedes(a, b);
  };
  if (!shares.several())
    return blocks_for_all ? *std::ranges::min_element(waiting, before) : waiting.front();
  return *std::ranges::min_element(waiting, [&](const Sequence* a, const Sequence* b) {
    if (a->priority != b->priority || a->share == b->share) return before(a, b);
    if (a->share->running != b->share->running) return a->share->running < b->share->running;
    const int32_t rank_a = shares.rank(*a->share), rank_b = shares.rank(*b->share);
    return rank_a != rank_b ? rank_a > rank_b : before(a, b);
  });
}

// Waiting sequences that do not wait for the disk, in order.
std::span<Sequence* const> Admission::admissible() const {
  if (open_.disk == nullptr) return open_.waiting();
  admissible_.clear();
  for (Sequence* seq : open_.waiting())
    if (seq->on_disk == Sequence::OnDisk::kKnown || seq->on_disk == Sequence::OnDisk::kLacksMemory)
      admissible_.push_back(seq);
  return admissible_;
}

bool Admission::knows_where_to_go_on(const Sequence* seq) const {
  return seq->known == seq->length && !open_.gave_way_now(seq);
}

// Running sequences have its adapter, or fewer different ones than they may.
bool Admission::has_adapter_room(const Sequence* seq) const {
  if (seq->adapter == nullptr) return true;
  const std::span<Sequence* const> running = open_.running();
  int32_t different = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    const auto& adapter = running[i]->adapter;
    if (adapter == seq->adapter) return true;
    const auto before = running.first(i);
    if (adapter != nullptr && std::ranges::find(before, adapter, &Sequence::adapter) == before.end())
      ++different;
  }
  return different < open_.limits.adapters_max;
}

bool Admission::try_admit(Sequence* seq, int32_t promised) {
  CHECK(knows_where_to_go_on(seq));
  seq->prefill_end = seq->length;
  open_.memory.begin(seq->memory, seq->salt, seq->prompt_length);
  if (seq->preemptions == 0) seq->matched_tokens = 0;
  match(open_.memory, seq);
  if (blocks_wanted(seq) - seq->memory.blocks() + promised > open_.memory.available()) {
    release(open_.memory, seq);
    return false;
  }
  if (seq->heard) open_.memory.attend_to(seq->memory, seq->heard->hash);
  open_.start(seq);
  return true;
}

void Admission::exchange() {
  const bool blocks_lack = std::exchange(blocks_lack_, false);
  const bool places_lack = std::ssize(open_.running()) == open_.limits.running_max;
  if (!open_.shares.several() || (!places_lack && !blocks_lack)) return;
  while (!open_.waiting().empty()) {
    Sequence* const seq = next_waiting(blocks_promised(open_.running()));
    if (seq == nullptr || !knows_where_to_go_on(seq) || !has_adapter_room(seq) || !exchange_for(seq)) return;
  }
}

// False if `seq` needs no other one's place or memory, or does not get them.
bool Admission::exchange_for(Sequence* seq) {
  tally();
  victims_.clear();
  const kv::SequenceMemory& memory = open_.memory;
  const int32_t promised = blocks_promised(open_.running());
  int32_t places = open_.limits.running_max - static_cast<int32_t>(open_.running().size());
  int32_t blocks = memory.available() - promised - blocks_wanted(seq);
  while (places <= 0 || blocks < 0) {
    Sequence* const victim = next_victim(seq, /*for_place=*/places <= 0);
    if (!victim) return false;
    victims_.push_back(victim);
    --victim->share->places;
    victim->share->claims -= claim(victim);
    ++places;
    blocks += memory.own_blocks(victim->memory) + blocks_promised(victim);
  }
  if (victims_.empty()) return false;
  for (Sequence* const victim : victims_) open_.preempt(victim);
  // More is free than was counted on, if anything.
  CHECK(try_admit(seq, blocks_promised(open_.running())));
  return true;
}

// The next one to give way to `seq`: the last of the caller that has most, if that keeps more than
// the other then has. Null: there is none.
Sequence* Admission::next_victim(const Sequence* seq, bool for_place) const {
  Sequence* victim = nullptr;
  for (Sequence* other : open_.running() | std::views::drop(1) | std::views::reverse) {
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

// What each caller that runs or waits has, before any sequence gives way.
void Admission::tally() {
  for (const std::span<Sequence* const> list : {open_.running(), open_.waiting()})
    for (const Sequence* seq : list) {
      seq->share->places = seq->share->running;
      seq->share->claims = 0;
    }
  for (const Sequence* seq : open_.running()) seq->share->claims += claim(seq);
}

Sequence* Admission::give_way() {
  const std::span<Sequence* const> running = open_.running();
  if (open_.disk != nullptr && open_.disk->active() &&
      std::ranges::all_of(running | std::views::drop(1), &Sequence::in_slab))
    return nullptr;
  Sequence* const last = last_of_largest();
  open_.preempt(last);
  blocks_lack_ = true;
  return last;
}

// Of those that are not in a slab, whose memory is being written to, and of the worst priority: the
// last of the caller that may ask for most.
Sequence* Admission::last_of_largest() {
  const std::span<Sequence* const> running = open_.running();
  const bool several = open_.shares.several();
  if (several) tally();
  Sequence* last = nullptr;
  for (Sequence* seq : running | std::views::reverse) {
    if (seq->in_slab) continue;
    const bool first = seq == running.front();
    if (last && (first || seq->priority != last->priority || !several)) break;
    if (!last || seq->share->claims > last->share->claims) last = seq;
  }
  CHECK(last != nullptr);
  CHECK(last != running.front() || running.size() > 1);  // Alone, every sequence fits.
  return last;
}

}  // namespace weir::sched
