// Scheduler: a plan is retire, decode, admit, prefill, commit, in this order (next_step()); below
// it the pages.
#include "sched/scheduler.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "base/check.h"

namespace weir::sched {

namespace {

bool precedes(const Sequence* a, const Sequence* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

// Keeps the order. Lists are short, and a move of pointers is cheap.
void insert_in_order(std::vector<Sequence*>& list, Sequence* seq) {
  list.insert(std::ranges::upper_bound(list, seq, precedes), seq);
}

void take_out(std::vector<Sequence*>& list, Sequence* seq) { CHECK(std::erase(list, seq) == 1); }

int32_t tokens_left(const Sequence* seq) { return seq->length - seq->computed; }

// Enough prompt tokens of those behind it have passed this one.
bool due(const Sequence* seq) {
  return seq->passed_tokens >= int64_t{kPatience} * tokens_left(seq);
}

// The order of prompts of one priority: those that are due, by arrival; then those with the fewest
// tokens left.
bool goes_first(const Sequence* a, const Sequence* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (due(a) != due(b)) return due(a);
  if (!due(a) && tokens_left(a) != tokens_left(b)) return tokens_left(a) < tokens_left(b);
  return precedes(a, b);
}

// The pages that must be free before `seq` is admitted, or that it may still ask for.
int32_t pages_wanted(const Sequence* seq) {
  const int32_t output_left = seq->limit - 1 - seq->length;  // The last token needs no page.
  const int32_t share = (output_left + kOutputShareDivisor - 1) / kOutputShareDivisor;
  return pages_for(seq->length + std::min(share, kOutputShareMax));
}

// The full pages of `seq` that may come from the cache. The last token is always computed: its
// logits are wanted.
int32_t matchable_pages(const Sequence* seq) { return (seq->length - 1) / kv::kPageTokens; }

}  // namespace

Scheduler::Scheduler(const Limits& limits, kv::PagePool& pool, kv::PrefixCache* cache)
    : limits_(limits),
      pool_(pool),
      cache_(cache),
      holders_(static_cast<size_t>(pool.page_count()), 0) {
  CHECK(limits.running_max > 0);
  CHECK(limits.running_max <= limits.step_tokens_max);  // Every decoder fits in every step.
  CHECK(limits.running_max <= limits.queue_max);
  running_.reserve(static_cast<size_t>(limits.running_max));
  prefills_.reserve(static_cast<size_t>(limits.running_max));
  waiting_.reserve(static_cast<size_t>(limits.queue_max));
}

void Scheduler::submit(Sequence* seq) {
  CHECK(seq->state == Sequence::State::kFree);
  CHECK(seq->length > 0 && seq->length < seq->limit && seq->limit - 1 <= tokens_max());
  CHECK(seq->pages.empty() && seq->computed == 0 && seq->known == seq->length);
  CHECK(std::ssize(waiting_) + std::ssize(running_) < limits_.queue_max);
  seq->state = Sequence::State::kWaiting;
  seq->arrival = ++arrivals_;
  seq->passed_tokens = 0;
  insert_in_order(waiting_, seq);
  waiting_pages_ += pages_wanted(seq);
}

void Scheduler::remove(Sequence* seq) {
  switch (seq->state) {
    case Sequence::State::kWaiting:
      waiting_pages_ -= pages_wanted(seq);
      take_out(waiting_, seq);
      break;
    case Sequence::State::kRunning:
      release(seq);
      take_out(running_, seq);
      break;
    case Sequence::State::kPlanned:
      break;
    case Sequence::State::kFree:
    case Sequence::State::kEnded:
      CHECK(false);
  }
  seq->state = Sequence::State::kEnded;
}

void Scheduler::extend(Sequence* seq) {
  CHECK(seq->known >= seq->length && seq->known < seq->limit);
  const bool waiting = seq->state == Sequence::State::kWaiting;
  if (waiting) waiting_pages_ -= pages_wanted(seq);
  seq->length = seq->known;
  if (waiting) waiting_pages_ += pages_wanted(seq);
}

void Scheduler::forget_shared() {
  if (cache_ == nullptr) return;
  cache_->clear();
  for (Sequence* seq : running_) seq->caching = false;
}

void Scheduler::next_step(Step& step, int32_t prefill_tokens_max) {
  CHECK(prefill_tokens_max > 0);  // Or nobody might have anything to do.
  step.clear();
  retire_planned();
  const bool room = plan_decodes(step);
  if (room) admit();
  if (limits_.slab_tokens_max == 0)
    plan_prefills(step, std::min(prefill_tokens_max, limits_.step_tokens_max - step.token_count));
  commit(step);
  CHECK(step.token_count <= limits_.step_tokens_max);
}

void Scheduler::next_slab(Step& slab) {
  CHECK(std::ranges::none_of(running_, &Sequence::in_slab));
  slab.clear();
  plan_prefills(slab, limits_.slab_tokens_max);
  for (const Slice& slice : slab.slices) slice.seq->in_slab = true;
  commit(slab);
}

void Scheduler::end_slab(const Step& slab) {
  for (const Slice& slice : slab.slices) {
    slice.seq->in_slab = false;
    share(slice.seq);
  }
}

// Sequences whose last token the step before has been planned to sample need nothing any more. The
// length of an answer is known without its tokens: such a row is never wasted.
void Scheduler::retire_planned() {
  const auto planned = [](const Sequence* seq) {
    return seq->length == seq->limit && !seq->in_slab;
  };
  for (Sequence* seq : running_) {
    if (!planned(seq)) continue;
    release(seq);
    seq->state = Sequence::State::kPlanned;
  }
  std::erase_if(running_, planned);
}

// Returns false if somebody had to give its pages back.
bool Scheduler::plan_decodes(Step& step) {
  bool room = true;
  int32_t spare = limits_.step_tokens_max - static_cast<int32_t>(running_.size());
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* seq = running_[i];
    if (seq->prefilling() || seq->in_slab) continue;
    const int32_t forced = std::min(tokens_left(seq) - 1, spare);
    bool held = true;
    while (held && !make_room(seq, 1 + forced)) {
      held = preempt_last() != seq;  // Never one that has a slice already.
      room = false;
    }
    if (!held) break;  // Behind it are only those of a slab.
    spare -= forced;
    step.slices.push_back({.seq = seq,
                           .first = seq->computed,
                           .count = 1 + forced,
                           .sample = 1 + forced == tokens_left(seq)});
    step.token_count += 1 + forced;
    ++step.decode_slices;
    ++step.generated_slices;
  }
  return room;
}

// Takes the pages of the next tokens, unless pages reserved for prompts are all there is.
bool Scheduler::make_room(Sequence* seq, int32_t tokens) {
  const int32_t missing = pages_for(seq->computed + tokens) - seq->pages.size();
  if (missing > 0 && available() - reserved() < missing) return false;
  grow(seq, seq->computed + tokens);
  return true;
}

// Of those that are not in a slab, whose pages are being written to.
Sequence* Scheduler::preempt_last() {
  const auto last = std::ranges::find_if_not(running_ | std::views::reverse, &Sequence::in_slab);
  CHECK(last != running_.rend());
  Sequence* seq = *last;
  CHECK(seq != running_.front() || running_.size() > 1);  // Alone, every sequence fits.
  running_.erase(std::prev(last.base()));
  release(seq);
  seq->state = Sequence::State::kWaiting;
  ++seq->preemptions;
  ++preemptions_;
  waiting_pages_ += pages_wanted(seq);
  insert_in_order(waiting_, seq);
  return seq;
}

void Scheduler::admit() {
  int32_t promised = 0;
  for (const Sequence* seq : running_)
    promised += std::max(0, pages_wanted(seq) - seq->pages.size());
  while (!waiting_.empty() && std::ssize(running_) < limits_.running_max) {
    Sequence* seq = next_waiting(promised);
    if (!try_admit(seq, promised)) break;
    promised += pages_wanted(seq) - seq->pages.size();
  }
}

Sequence* Scheduler::next_waiting(int32_t promised) const {
  if (waiting_pages_ + promised > available()) return waiting_.front();
  return *std::ranges::min_element(waiting_, goes_first);
}

bool Scheduler::try_admit(Sequence* seq, int32_t promised) {
  CHECK(seq->known == seq->length);  // Preempted a plan ago at least.
  seq->prefill_end = seq->length;
  seq->key = seq->salt;
  seq->caching = cache_ != nullptr;
  if (seq->preemptions == 0) seq->matched_tokens = 0;
  match(seq);
  if (pages_wanted(seq) - seq->pages.size() + promised > available()) {
    release(seq);
    return false;
  }
  waiting_pages_ -= pages_wanted(seq);
  take_out(waiting_, seq);
  insert_in_order(running_, seq);
  seq->state = Sequence::State::kRunning;
  return true;
}

void Scheduler::plan_prefills(Step& step, int32_t tokens_max) {
  prefills_.clear();
  for (Sequence* seq : running_)
    if (seq->prefilling()) prefills_.push_back(seq);
  std::ranges::sort(prefills_, goes_first);
  for (Sequence* seq : prefills_) {
    if (step.prefill_tokens >= tokens_max) break;
    match(seq);  // What others have computed since it was admitted.
    if (computed_in_step(seq, step)) continue;
    const int32_t left = tokens_left(seq);
    int32_t count = std::min(left, tokens_max - step.prefill_tokens);
    // What a preempted sequence had generated comes in a slice of its own.
    if (limits_.prompts_differ && seq->computed < seq->prompt_length)
      count = std::min(count, seq->prompt_length - seq->computed);
    grow(seq, seq->computed + count);
    add_prefill(step,
                {.seq = seq, .first = seq->computed, .count = count, .sample = count == left});
  }
}

void Scheduler::add_prefill(Step& step, const Slice& slice) const {
  const bool generated = limits_.prompts_differ && slice.first >= slice.seq->prompt_length;
  step.slices.insert(generated ? step.slices.begin() + step.generated_slices++ : step.slices.end(),
                     slice);
  step.token_count += slice.count;
  step.prefill_tokens += slice.count;
}

// From here on the step counts as done.
void Scheduler::commit(const Step& step) {
  for (const Slice& slice : step.slices)
    if (slice.seq->prefilling()) note_passed(slice);
  for (const Slice& slice : step.slices) {
    slice.seq->computed += slice.count;
    if (slice.sample) ++slice.seq->length;
    if (!slice.seq->in_slab) share(slice.seq);
  }
}

// Whoever came before this slice's prompt and is not through its own has been passed.
void Scheduler::note_passed(const Slice& slice) {
  const auto passed = [&slice](const Sequence* seq) { return precedes(seq, slice.seq); };
  for (Sequence* seq : running_ | std::views::take_while(passed))
    if (seq->prefilling()) seq->passed_tokens += slice.count;
  for (Sequence* seq : waiting_ | std::views::take_while(passed)) seq->passed_tokens += slice.count;
}

int32_t Scheduler::reserved() const {
  int32_t pages = 0;
  for (const Sequence* seq : running_)
    pages += std::max(0, pages_for(seq->prefill_end) - seq->pages.size());
  return pages;
}

// REQUIRES: the pages are available(): free, or in the cache and held by nobody.
void Scheduler::grow(Sequence* seq, int32_t tokens) {
  const int32_t missing = pages_for(tokens) - seq->pages.size();
  if (missing <= 0) return;
  if (missing > pool_.free_count() && cache_ != nullptr)
    cache_->evict(missing - pool_.free_count());
  const kv::PageId last = seq->pages.last();
  const std::span<kv::PageId> added = seq->pages.append(missing);
  CHECK(pool_.allocate(added, last));
  for (const kv::PageId page : added) hold(page);
}

void Scheduler::release(Sequence* seq) {
  share(seq);
  if (seq->cached_pages > 0) cache_->touch(seq->key);
  for (const kv::PageId page : seq->pages.pages()) {
    drop(page);
    pool_.release(page);
  }
  seq->pages.clear();
  seq->computed = 0;
  seq->cached_pages = 0;
}

// A token as pages are shared by it: where it matters, generated ones are told from those of
// prompts by their complement, which no token id equals.
int32_t Scheduler::marked_token(const Sequence* seq, int32_t index) const {
  const int32_t token = seq->token(index);
  return limits_.prompts_differ && index >= seq->prompt_length ? ~token : token;
}

Scheduler::PageTokens Scheduler::tokens_of_page(const Sequence* seq, int32_t page) const {
  PageTokens tokens;
  for (int32_t i = 0; i < kv::kPageTokens; ++i)
    tokens[static_cast<size_t>(i)] = marked_token(seq, page * kv::kPageTokens + i);
  return tokens;
}

// True if a slice of the step computes, at least in part, the page that `seq` needs next.
bool Scheduler::computed_in_step(const Sequence* seq, const Step& step) const {
  const int32_t page = seq->computed / kv::kPageTokens;
  const int32_t end = (page + 1) * kv::kPageTokens;
  if (page >= matchable_pages(seq) || seq->whole_prompt) return false;
  for (const Slice& slice : step.slices) {
    const Sequence* other = slice.seq;
    if (slice.first >= end || slice.first + slice.count <= end - kv::kPageTokens) continue;
    if (other->known < end || !(other->salt == seq->salt) || !other->caching) continue;
    // Equal keys stand for equal pages before this one.
    const bool same_chain = other->cached_pages == seq->cached_pages && other->key == seq->key;
    int32_t equal = same_chain ? end - kv::kPageTokens : 0;
    while (equal < end && marked_token(other, equal) == marked_token(seq, equal)) ++equal;
    if (equal == end) return true;
  }
  return false;
}

// Takes the pages from the cache that continue what is computed, if all of that is cached.
void Scheduler::match(Sequence* seq) {
  if (seq->whole_prompt) return;
  const int32_t before = seq->cached_pages;
  while (seq->caching && seq->computed == seq->cached_pages * kv::kPageTokens &&
         seq->cached_pages < matchable_pages(seq)) {
    const PageTokens tokens = tokens_of_page(seq, seq->cached_pages);
    const kv::PrefixCache::Inserted next = cache_->next_page(seq->key, seq->pages.last(), tokens);
    if (next.page < 0) break;
    seq->pages.append(1).front() = next.page;
    hold(next.page);
    seq->key = next.key;
    ++seq->cached_pages;
    seq->computed += kv::kPageTokens;
    if (seq->preemptions == 0) seq->matched_tokens += kv::kPageTokens;
  }
  if (seq->cached_pages > before) cache_->touch(seq->key);
}

// Caches the full pages whose tokens are known. If another sequence has cached the same tokens, or
// the chain is broken, it stops for good: to go on behind a page that this sequence does not hold
// would break invariant 3.
void Scheduler::share(Sequence* seq) {
  while (seq->caching &&
         (seq->cached_pages + 1) * kv::kPageTokens <= std::min(seq->known, seq->computed)) {
    const PageTokens tokens = tokens_of_page(seq, seq->cached_pages);
    const kv::PageId page = seq->pages[seq->cached_pages];
    const kv::PrefixCache::Inserted inserted = cache_->insert(seq->key, tokens, page);
    seq->caching = inserted.page == page;
    if (!seq->caching) break;
    seq->key = inserted.key;
    ++seq->cached_pages;
  }
}

void Scheduler::hold(kv::PageId page) {
  if (holders_[static_cast<size_t>(page)]++ == 0) ++held_pages_;
}

void Scheduler::drop(kv::PageId page) {
  CHECK(holders_[static_cast<size_t>(page)] > 0);
  if (--holders_[static_cast<size_t>(page)] == 0) --held_pages_;
}

void Scheduler::check() const {
  pool_.check();
  if (cache_ != nullptr) cache_->check();
  CHECK(std::ranges::is_sorted(running_, precedes) && std::ranges::is_sorted(waiting_, precedes));
  CHECK(std::ssize(running_) <= limits_.running_max);
  std::vector<int32_t> holders(holders_.size(), 0);
  for (const Sequence* seq : running_) {
    CHECK(seq->state == Sequence::State::kRunning);
    CHECK(seq->computed < seq->length && seq->length <= seq->limit && seq->known <= seq->length);
    CHECK(seq->pages.size() >= pages_for(seq->computed));
    CHECK(seq->cached_pages * kv::kPageTokens <= std::min(seq->computed, seq->known));
    for (const kv::PageId page : seq->pages.pages()) ++holders[static_cast<size_t>(page)];
  }
  int64_t waiting_pages = 0;
  for (const Sequence* seq : waiting_) {
    CHECK(seq->state == Sequence::State::kWaiting);
    CHECK(seq->pages.empty() && seq->computed == 0 && seq->cached_pages == 0);
    waiting_pages += pages_wanted(seq);
  }
  CHECK(waiting_pages == waiting_pages_);
  CHECK(holders == holders_);
  CHECK(held_pages_ == std::ranges::count_if(holders, [](int32_t n) { return n > 0; }));
  int32_t cache_references = 0;
  for (kv::PageId page = 0; page < pool_.page_count(); ++page) {
    const int32_t others = pool_.refs(page) - holders[static_cast<size_t>(page)];
    CHECK(others == 0 || others == 1);
    cache_references += others;
  }
  CHECK(cache_references == (cache_ != nullptr ? cache_->page_count() : 0));
  CHECK(available() == pool_.free_count() + (cache_ != nullptr ? cache_->evictable_count() : 0));
  CHECK(available() >= reserved());
}

}  // namespace weir::sched
