#include "api/preparation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace weir::api {

namespace {

Expiry too_many() {
  return {Error{ErrorCode::kOverloaded, "Too many requests are being prepared; try again later."},
          {}};
}

}  // namespace

Preparation::Preparation(const Limits& limits, Lane pool, Lane background, Gauge& preparing)
    : limits_(limits),
      pool_(std::move(pool)),
      background_(std::move(background)),
      preparing_(preparing),
      pool_queue_(limits.threads, limits.threads_of_one_max),
      background_queue_(limits.background_threads, limits.background_threads) {}

Preparation::~Preparation() {
  for (const auto& [id, entry] : jobs_) entry->job.interrupt->stop();
}

uint64_t Preparation::add(Job job) {
  const uint64_t id = next_id_++;
  if (ended_) {
    job.refuse({*ended_, {}});
    return id;
  }
  if (jobs_.size() >= static_cast<size_t>(limits_.jobs_max) && !make_room(job.caller)) {
    job.refuse(too_many());
    return id;
  }
  const auto entry = std::make_shared<Entry>();
  entry->id = id;
  entry->job = std::move(job);
  jobs_.emplace(id, entry);
  preparing_.set(static_cast<double>(jobs_.size()));
  wait(*entry);
  pump();
  return id;
}

// Refuses a job of the caller that has most waiting, if that is more than this caller would have.
bool Preparation::make_room(uint64_t caller) {
  const auto most =
      std::ranges::max_element(waiting_of_, {}, [](const auto& of) { return of.second; });
  if (most == waiting_of_.end()) return false;
  const auto own = waiting_of_.find(caller);
  const int32_t would_have = (own == waiting_of_.end() ? 0 : own->second) + 1;
  if (most->second <= would_have) return false;
  const uint64_t greedy = most->first;
  auto youngest = pool_queue_.youngest(greedy);
  if (!youngest) youngest = background_queue_.youngest(greedy);
  const Expiry refusal = too_many();
  drop(*jobs_.at(*youngest), &refusal);
  return true;
}

void Preparation::wait(Entry& entry) {
  entry.state = State::kWaiting;
  queue_of(entry).push(entry.job.caller, entry.id);
  ++waiting_of_[entry.job.caller];
}

void Preparation::stop_waiting(Entry& entry) {
  entry.state = State::kRunning;
  const auto waiting = waiting_of_.find(entry.job.caller);
  if (--waiting->second == 0) waiting_of_.erase(waiting);
}

// Gives work to threads that are free.
void Preparation::pump() {
  while (const auto id = pool_queue_.take()) start(jobs_.at(*id));
  while (const auto id = background_queue_.take()) start(jobs_.at(*id));
}

void Preparation::start(const EntryPtr& entry) {
  stop_waiting(*entry);
  const bool alone = background_queue_.taken() == 0;
  std::optional<Interrupt::Duration> time = alone ? limits_.compile_alone_max : limits_.compile_max;
  if (entry->in_background) time.reset();
  const Lane& lane = entry->in_background ? background_ : pool_;
  const bool begun = lane(
      [entry, time, thread_time = limits_.thread_time] {
        Interrupt& interrupt = *entry->job.interrupt;
        if (interrupt.stopped()) return;
        const Interrupt::Duration before = thread_time();
        interrupt.allow(time);
        entry->job.work();
        entry->cost_ns = (thread_time() - before).count();
      },
      [this, id = entry->id] { finish(id); });
  if (begun) return;
  queue_of(*entry).settle(entry->job.caller, 0);
  if (!std::exchange(entry->over, true)) entry->job.refuse(too_many());
  forget(entry->id);
}

void Preparation::finish(uint64_t id) {
  const EntryPtr entry = jobs_.at(id);
  queue_of(*entry).settle(entry->job.caller, std::exchange(entry->cost_ns, 0));
  const bool again = !entry->over && !entry->in_background && entry->job.interrupt->postponed();
  if (again) {
    entry->in_background = true;
    wait(*entry);
  } else {
    forget(id);
  }
  pump();  // Before the answer begins, which takes a while.
  if (!again && !std::exchange(entry->over, true)) entry->job.done();
}

// Ends a job early, with an error or, of a client that has left, without a word.
void Preparation::drop(Entry& entry, const Expiry* refusal) {
  if (std::exchange(entry.over, true)) return;
  const EntryPtr held = jobs_.at(entry.id);
  entry.job.interrupt->stop();
  if (entry.state == State::kWaiting) {
    queue_of(entry).remove(entry.job.caller, entry.id);
    stop_waiting(entry);
    forget(entry.id);
  }
  if (refusal) entry.job.refuse(*refusal);
}

void Preparation::forget(uint64_t id) {
  jobs_.erase(id);
  preparing_.set(static_cast<double>(jobs_.size()));
}

void Preparation::leave(uint64_t id) {
  if (const auto found = jobs_.find(id); found != jobs_.end()) drop(*found->second, nullptr);
}

void Preparation::expire(
    const std::function<std::optional<Expiry>(Clock::time_point arrived)>& expired) {
  std::vector<EntryPtr> waiting;
  for (const auto& [id, entry] : jobs_)
    if (entry->state == State::kWaiting) waiting.push_back(entry);
  for (const EntryPtr& entry : waiting)
    if (const auto refusal = expired(entry->job.arrived)) drop(*entry, &*refusal);
}

void Preparation::end(const Error& error) {
  ended_ = error;
  std::vector<EntryPtr> all;
  for (const auto& [id, entry] : jobs_) all.push_back(entry);
  const Expiry refusal{error, {}};
  for (const EntryPtr& entry : all) drop(*entry, &refusal);
}

}  // namespace weir::api
