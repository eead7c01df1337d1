// Preparation: the requests that are prepared (parsed, rendered, tokenised, their grammars
// compiled), from the end of their body to the work's end: which of them gets a thread next, and
// which are dropped before they get one.
//
// There are two lanes. The pool's threads prepare, and compile what is compiled soon. A grammar
// that takes longer is interrupted, and its request goes to the other lane, a thread of lower
// priority that does the whole work once more: so the longest compilations, hundreds of
// milliseconds for what is refused in the end, delay only one another. In both lanes callers
// share the threads by the CPU time that their work took (FairQueue).
//
// Threads: the loop's; a job's work runs on the lanes' threads.
//
// Invariants:
// (1) Of every job that is added one thing is called, once: done(), refuse(), or nothing if its
//     client has left.
// (2) A job is held until its work has returned, however its request ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "api/stream/deadline.h"
#include "base/fair_queue.h"
#include "base/metrics.h"
#include "base/result.h"
#include "grammar/interrupt.h"

namespace weir::api {

class Preparation {
 public:
  using Clock = std::chrono::steady_clock;
  using Interrupt = grammar::Interrupt;

  // One request's work.
  struct Job {
    uint64_t caller = 0;  // Exchange::caller().
    Clock::time_point arrived{};
    std::shared_ptr<Interrupt> interrupt = std::make_shared<Interrupt>();
    // On a lane's thread. Called once more, on the other's, if the interrupt says `postponed`.
    std::function<void()> work;
    std::function<void()> done;
    // Instead of done(): the request is answered with the error.
    std::function<void(const Expiry&)> refuse;
  };

  // Runs `work` on a thread of the lane's, then `done` on the loop's. False, and nothing is called,
  // if it takes nothing any more.
  using Lane = std::function<bool(std::function<void()> work, std::function<void()> done)>;

  struct Limits {
    int32_t jobs_max = 1024;         // Waiting and being worked on.
    int32_t threads = 5;             // Of the pool, that are used at once,
    int32_t threads_of_one_max = 4;  // and that one caller's requests get.
    int32_t background_threads = 1;  // Of the other lane.
    // How long a grammar may be compiled in the pool: while the other lane has nothing to do, and
    // otherwise. Compiling the parameters of a tool takes 1 to 15 ms, those of a dozen 15 to 90; a
    // grammar that is refused as too complex 400 to 500.
    Interrupt::Duration compile_alone_max = std::chrono::milliseconds(100);
    Interrupt::Duration compile_max = std::chrono::milliseconds(10);
    Interrupt::Duration (*thread_time)() = &Interrupt::thread_time;  // What work costs.
  };

  // `preparing` shows how many jobs there are.
  Preparation(const Limits& limits, Lane pool, Lane background, Gauge& preparing);
  // Tells all work to stop; REQUIRES: none of it runs in the pool.
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  // Beyond jobs_max the youngest job that waits is refused of the caller that has most of them
  // waiting, which may be this one. Returns a number for leave(); the job may have been refused.
  uint64_t add(Job job);
  // The client has left: work that has not begun is dropped, a compilation ends soon. A job that is
  // not there any more is left alone.
  void leave(uint64_t id);
  // Refuses each job that waits and for which `expired` has something to say.
  void expire(const std::function<std::optional<Expiry>(Clock::time_point arrived)>& expired);
  // Refuses all jobs there are, waiting or being worked on, and all that come.
  void end(const Error& error);

  // Jobs whose work waits or runs, also of requests that were answered meanwhile.
  size_t count() const { return jobs_.size(); }

 private:
  enum class State : uint8_t { kWaiting, kRunning };
  struct Entry {
    uint64_t id = 0;
    Job job;
    State state = State::kWaiting;
    bool in_background = false;
    bool over = false;    // Answered, or given up by its client; the work may still run.
    int64_t cost_ns = 0;  // Of the work that has just ended.
  };
  using EntryPtr = std::shared_ptr<Entry>;

  FairQueue<uint64_t>& queue_of(const Entry& entry) {
    return entry.in_background ? background_queue_ : pool_queue_;
  }
  void wait(Entry& entry);
  void stop_waiting(Entry& entry);
  bool make_room(uint64_t caller);
  void pump();
  void start(const EntryPtr& entry);
  void finish(uint64_t id);
  void drop(Entry& entry, const Expiry* refusal);
  void forget(uint64_t id);

  const Limits limits_;
  const Lane pool_, background_;
  Gauge& preparing_;
  FairQueue<uint64_t> pool_queue_, background_queue_;
  std::unordered_map<uint64_t, EntryPtr> jobs_;       // By id.
  std::unordered_map<uint64_t, int32_t> waiting_of_;  // By caller, in both queues.
  std::optional<Error> ended_;
  uint64_t next_id_ = 1;
};

}  // namespace weir::api
