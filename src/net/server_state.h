// ServerState: what the connections of one HttpServer share. HttpServer::Impl derives from it.
//
// Threads: the loop's.
//
// Invariants:
// (1) It outlives every handle that points to it: each counts in open_handles, and it frees itself
//     when HttpServer has gone (orphaned) and the last handle is closed.
#pragma once

#include <uv.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http.h"
#include "net/http_parser.h"
#include "net/http_response.h"
#include "net/loop_impl.h"
#include "net/peer_shares.h"
#include "net/read_turns.h"
#include "net/timer_wheel.h"

namespace weir::net {

class HttpConnection;

struct ServerState {
  ServerState(Loop::Impl& owner, const HttpLimits& http_limits);
  virtual ~ServerState() = default;
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  // Deadlines of connections.
  void arm(WheelTimer& timer, uint64_t deadline_ms);
  void disarm(WheelTimer& timer) { wheel_.disarm(timer); }
  // Calls connection->run_deferred() in the next turn of the loop.
  void defer(HttpConnection* connection);

  void add(HttpConnection* connection);
  // It only carries a 503 away, and has no place among the others.
  void mark_refused(HttpConnection* connection);
  // The connection's handle is closed and it is about to be freed.
  void remove(HttpConnection* connection);
  void handle_closed();
  // Calls drained() in the next turn of the loop.
  void wake_drained();
  // The peer has taken this much more of the loop's turn.
  void count_turn(PeerId peer, size_t cost);
  void count_read(PeerId peer, size_t cost);
  // The connection reads no more until its peer has another turn.
  ReadTurns::Ticket wait_turn(PeerId peer, HttpConnection* connection);

  uint64_t now_ms() const { return loop_impl.now_ms(); }
  std::string_view date_text() { return date_.text(time(nullptr)); }

  Loop::Impl& loop_impl;
  uv_loop_t* const loop;
  const HttpLimits limits;
  // What connections hold together.
  PeerShares places{static_cast<size_t>(limits.connections_max)};
  PeerShares heads{limits.heads_bytes_max};
  PeerShares bodies{limits.arriving_bytes_max};
  PeerShares small_bodies{limits.small_bodies_bytes_max};
  PeerShares answers{limits.answers_bytes_max};
  const HttpConnection* large_answer = nullptr;  // The one that is beyond answers.
  ReadTurns turns;
  HttpStats stats;
  HttpServer::Handler handler;
  HttpServer::ErrorBody error_body;
  HttpServer::WantsBody wants_body;
  HttpServer::ErrorHeaders error_headers;
  std::shared_ptr<TlsContext> tls;

  bool draining = false;
  std::function<void()> drained;
  bool closing = false;   // Every handle is closed or being closed.
  bool orphaned = false;  // HttpServer has gone: nothing of the application is called any more.

  HttpConnection* connections = nullptr;  // Linked through the connections.
  int32_t connection_count = 0;
  int32_t refused_count = 0;  // Of them, those that only carry a 503 away.
  int32_t open_handles = 0;

  std::string head;    // Of the response that is being written; kept for its memory.
  std::string sealed;  // What TLS makes of it; the same.

  // All reading is parsed at once or copied, so one buffer serves every connection.
  std::array<char, 64 << 10> read_buffer;

 protected:
  // Closes the timer, the handles of the loop's turns and every connection.
  void close_handles();
  // Connections that wait to be accepted may be; a listener does what it put off.
  virtual void begin_turn() = 0;
  // Something waits for the next turn of the loop: it comes at once.
  void hurry() { start_idle(); }
  // Calls begin_turn() when the next turn begins, whenever that is.
  void expect_turn();
  // Does what is due by the clock.
  void run_timer();

 private:
  void start_timer();
  void start_idle();
  void run_deferred();
  void run_turn();
  void maybe_drained();

  HttpDate date_;
  TimerWheel wheel_;
  uv_timer_t timer_;
  uint64_t timer_due_ms_ = 0;  // 0: not started.
  uv_idle_t idle_;             // Runs while something is deferred.
  std::vector<HttpConnection*> deferred_;
  uv_prepare_t prepare_;  // Runs before the loop polls, where a turn has taken something.
  std::vector<HttpConnection*> go_on_;  // Scratch of run_turn().
};

}  // namespace weir::net
