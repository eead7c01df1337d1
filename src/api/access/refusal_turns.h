// RefusalTurns: when requests are told that there is no room for them (429).
//
// To refuse a request costs a connection, a parse and often a look at its tokens. A client that
// asks again as soon as it is refused, whatever Retry-After says, would have the processors do
// nothing else. So each caller gets kAtOnce refusals a tick (a second) at once, and the others in
// later ticks, in order: a client cannot ask faster than it is answered. A refusal that is held
// costs its text and its connection; its key's places and its memory are given back before.
//
// Threads: the loop's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/metrics.h"
#include "net/http.h"

namespace weir::api {

class RefusalTurns {
 public:
  // A caller with as many clients that ask at once, and again after the second that Retry-After
  // asks for, never waits. As many refusals take a hundredth of a processor's time.
  static constexpr int32_t kAtOnce = 32;
  // Ticks after which a refusal is given whatever the caller has had: clients must not time out.
  static constexpr int32_t kTicksMax = 4;
  // About 1 KiB each, and a connection. Beyond, the one that has waited longest is given.
  static constexpr size_t kHeldMax = 4096;

  // `held`: counts refusals that wait.
  explicit RefusalTurns(Counter& held) : held_count_(held) {}

  // Responds now or later.
  void respond(uint64_t caller, net::HttpResponderPtr responder, int status,
               net::HttpResponder::Headers headers, std::string_view body);
  void tick();
  // Responds to all that wait, and makes none wait from now on: the server ends.
  void end();

  size_t held() const { return held_.size(); }

 private:
  struct Held {
    uint64_t caller = 0;
    int32_t ticks = 0;  // That it has waited.
    int status = 0;
    net::HttpResponderPtr responder;
    net::HttpResponder::Headers headers;
    std::string body;

    void give() const { responder->respond(status, headers, body); }
  };

  // The one that has waited longest is held no more.
  Held take_first();

  std::deque<Held> held_;                           // In the order in which they came.
  std::unordered_map<uint64_t, int32_t> answered_;  // In this tick, by caller.
  Counter& held_count_;
  bool ended_ = false;
};

}  // namespace weir::api
