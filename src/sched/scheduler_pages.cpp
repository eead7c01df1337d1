// The pages of sequences: taking them, giving them back, sharing them through the prefix cache.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "sched/scheduler.h"

namespace weir::sched {

namespace {

// The full pages of `seq` that may come from the cache. The last token is always computed: its
// logits are wanted.
int32_t matchable_pages(const Sequence* seq) { return (seq->length - 1) / kv::kPageTokens; }

}  // namespace

void Scheduler::forget_shared() {
  if (cache_ == nullptr) return;
  cache_->clear();
  for (Sequence* seq : running_) seq->caching = false;
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

// Those that nobody else holds.
int32_t Scheduler::own_pages(const Sequence* seq) const {
  int32_t own = 0;
  for (const kv::PageId page : seq->pages.pages()) own += holders_[static_cast<size_t>(page)] == 1;
  return own;
}

void Scheduler::check() const {
  pool_.check();
  if (cache_ != nullptr) cache_->check();
  CHECK(std::ranges::is_sorted(running_, precedes) && std::ranges::is_sorted(waiting_, precedes));
  CHECK(std::ssize(running_) <= limits_.running_max);
  std::vector<int32_t> holders(holders_.size(), 0);
  for (const Sequence* seq : running_) {
    CHECK(seq->state == Sequence::State::kRunning && seq->share != nullptr);
    CHECK(std::ranges::count(running_, seq->share, &Sequence::share) == seq->share->running);
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
