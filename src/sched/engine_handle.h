// EngineHandle: the engine as other threads may see it. Submit, cancel, read counters.
//
// Threads: any; nothing here blocks, locks or waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bell.h"
#include "base/result.h"
#include "base/ring.h"
#include "sched/engine_stats.h"
#include "sched/request.h"

namespace weir::sched {

struct Message {
  enum class Kind : uint8_t { kNone, kSubmit, kCancel } kind = Kind::kNone;
  Request* request = nullptr;
};

class EngineHandle {
 public:
  // `queue_max`: requests that may wait or run at once; more are refused with kOverloaded.
  // `inbox_capacity` is raised to what the queue needs. `bell`: the stage's, which outlives it.
  EngineHandle(int32_t queue_max, size_t inbox_capacity, Bell& bell);
  ~EngineHandle() { delete given_up_.load(std::memory_order_relaxed); }
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  // Lends `request` to the engine. kOverloaded when the queue is full, kUnavailable once draining
  // or given up, or before the engine is built, kContextLength when the request can never fit the
  // pages, and kInvalid when it is malformed. On error the request was not lent.
  Result<void> submit(Request* request);
  // Asks for the end of a submitted request. Its log finishes soon after (kCancelled, or whatever
  // came first). Always succeeds: the inbox has room for one cancellation per queued request. A
  // cancellation that comes too late does nothing.
  void cancel(Request* request);

  // Most tokens, prompt and output together, that a request may have: the context, or the KV cache
  // where that is smaller. 0 before the engine is built.
  int32_t max_tokens_fit() const { return tokens_max_.load(std::memory_order_acquire); }

  // What its model hears by cross attention. REQUIRES: max_tokens_fit() is not 0.
  const HearingLimits& hearing() const { return hearing_; }

  // Requests that may wait or run at once.
  int32_t queue_max() const { return queue_max_; }
  // What submit() says when there are so many.
  Error queue_full() const;

  // No more submissions; what was submitted goes on.
  void drain() { draining_.store(true, std::memory_order_release); }
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // The weights are not any more what was loaded: what is open ends with this failure before it is
  // given another token, and nothing is taken any more. The first call counts. Any thread.
  void give_up(std::string why);
  // Null: it goes on. Any thread; valid as long as the handle.
  const std::string* given_up() const { return given_up_.load(std::memory_order_acquire); }

  // Submitted and not finished. It falls just before the log finishes, so that a thread that has
  // seen the end of one request may submit the next.
  int32_t open() const { return open_.load(std::memory_order_acquire); }

  const EngineStats& stats() const { return stats_; }

  // What is computed of prompts is kept on disk, also after this process.
  bool keeps_on_disk() const { return keeps_on_disk_.load(std::memory_order_relaxed); }

 private:
  friend class Engine;
  friend struct EngineState;
  friend class Inbox;

  Result<void> check(const Request& request) const;
  Result<void> check_parts(const Request& request) const;
  Result<void> check_hearing(const Request& request) const;

  const int32_t queue_max_;
  MpscRing<Message> inbox_;
  std::atomic<int32_t> open_{0};
  std::atomic<bool> draining_{false};
  std::atomic<const std::string*> given_up_{nullptr};
  std::atomic<int32_t> tokens_max_{0};
  std::atomic<int32_t> vocab_size_{0};
  std::atomic<int32_t> hidden_size_{0};
  Bell& bell_;                      // The engine's thread sleeps on it when idle.
  std::atomic<uint32_t> sheds_{0};  // How often it was asked to give memory back.
  MediaLimits media_;  // These are written before tokens_max_ is.
  HearingLimits hearing_;
  EngineStats stats_;
  std::atomic<bool> keeps_on_disk_{false};
};

}  // namespace weir::sched
