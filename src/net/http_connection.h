// HttpConnection: one client. Reads requests one after the other, hands each to the server's
// handler and writes its answer; a pipelined request waits until the answer before it is written.
// What it waits for itself is in http_connection.cpp, what it writes in http_connection_write.cpp,
// and what it holds of what all connections share in http_connection_shares.cpp.
//
// Threads: the loop's.
//
// Invariants:
// (1) kReading: no answer is pending, nothing but perhaps a 100 Continue is queued. kAnswering:
// answer_ is set. kFlushing:
//     the answer is complete but not all of it is written. kLingering: our side is shut down; what
//     still comes is thrown away. kClosed: uv_close() was called.
// (2) The application is called only from the loop: never from within a call of its own.
// (3) Bounded memory: the parser's limits, kPipelineBytesMax and one read, stream_queue_bytes_max.
//     What it holds is counted in its shares of heads, bodies and answers (ServerState); a closed
//     connection has given all of them back.
// (4) It frees itself when its handle is closed.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/http_parser.h"
#include "net/pace.h"
#include "net/peer_shares.h"
#include "net/server_state.h"
#include "net/timer_wheel.h"
#include "net/tls.h"

namespace weir::net {

class HttpAnswer;

class HttpConnection final : private BodyMemory {
 public:
  enum class Transport : uint8_t { kTcp, kUnix };

  // Accepts from `listener`; one for which there is no place gets a 503 at once. Returns an error
  // of uv.
  static int accept(ServerState& server, uv_stream_t* listener, Transport transport);

  // Closes at once; pending answers learn of it in the next turn of the loop.
  void close();
  // For a drain: closes now if no request has begun, else after the answer.
  void close_when_idle();
  // Closes also if a request has begun, but not while it is answered.
  void close_if_reading();
  // Drops the application's callbacks without calling them.
  void forget_callbacks();

  void on_deadline();
  void run_deferred();
  // Its peer has another turn.
  void go_on();

  HttpConnection* previous = nullptr;  // The server's list.
  HttpConnection* next = nullptr;
  bool is_deferred = false;
  bool is_refused = false;
  WheelTimer timer;

 private:
  friend class HttpAnswer;
  enum class State : uint8_t { kReading, kAnswering, kFlushing, kLingering, kClosed };
  enum class Awaited : uint8_t { kNothing, kHandshake, kRequest, kHeaders, kBody };

  HttpConnection(ServerState& server, Transport transport);
  ~HttpConnection() = default;

  // Its shares.
  bool take_place();
  bool hold_head();
  bool hold_body(size_t bytes) override;
  bool hold_answer();
  bool make_room(PeerShares& shares, PeerShare& share, size_t amount, Counter& yielded,
                 std::string_view reason);
  void update_yield();
  void give_up(std::string_view reason);
  void give_back_all();

  // Reading.
  void begin();
  void start_reading();
  void pause_reading();
  void read_on();
  void wait_turn();
  void on_read(ssize_t count, const char* data);
  void on_bytes(std::string_view bytes);
  void on_sealed_bytes(std::string_view bytes);
  void fail_tls(bool plain_http);
  void on_end_of_input();
  void process(std::string_view bytes);
  void keep_for_later(std::string_view bytes);
  void arm_read_deadline();
  void arm_answer_deadline();
  void begin_body();
  void dispatch();
  // Answers for the application, and ends the connection.
  void refuse(int status, std::string_view message);
  void refuse_head();
  void refuse_more();
  void send_error(int status, std::string_view message, const HttpRequest& request);
  bool peer_has_hung_up() const;
  uint64_t bytes_taken_by_peer() const;
  const std::string& peer();
  sockaddr_storage peer_address() const;

  // Answering; called by HttpAnswer.
  void respond(int status, const HttpResponder::Headers& headers, std::string_view body);
  void start_stream(int status, const HttpResponder::Headers& headers);
  void write_stream(StreamBuffer& buffer);
  void end_stream();
  void finish_answer();
  void defer_drained();
  void prefetch() const;

  // Writing.
  void send(std::string_view bytes, std::string_view more = {});
  void send_sealed();
  void send_raw(std::string_view bytes, std::string_view more = {});
  void say_goodbye();
  // `goes_on`: there was no moment without something to write.
  void start_write(bool goes_on);
  void on_written(int status);
  void on_flushed();
  void begin_linger();
  size_t queued_bytes() const;

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&handle_); }
  const uv_stream_t* stream() const { return reinterpret_cast<const uv_stream_t*>(&handle_); }
  bool is_closed() const { return state_ == State::kClosed; }

  ServerState& server_;
  union {
    uv_handle_t base;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle_;
  const Transport transport_;
  State state_ = State::kReading;
  Awaited awaited_ = Awaited::kNothing;  // What the timer waits for in kReading.
  uint64_t waiting_since_ms_ = 0;        // For that.
  Pace body_pace_, brisk_pace_;          // Of the body, at the least rate and at a brisk one.
  bool processing_ = false;
  bool reading_ = false;  // Or it would, as soon as its turn comes.
  bool writing_ = false;
  bool end_of_input_ = false;
  bool keep_alive_ = true;
  bool head_only_ = false;  // The answer to a HEAD request.
  bool chunked_ = false;    // The stream being written.
  bool call_drained_ = false;
  bool body_unwanted_ = false;  // It is thrown away before the request is answered, or
  bool ignores_input_ = false;  // not read at all: the connection ends with the answer.

  std::unique_ptr<TlsSession> tls_;  // Null: what is sent is what is read.
  HttpParser parser_;
  std::string pending_;  // Read, not parsed.
  std::string peer_;
  PeerId peer_id_ = kUnixPeer;
  std::shared_ptr<HttpAnswer> answer_;
  size_t answering_head_ = 0;  // What the head of the request holds that is being answered.
  PeerShare place_, head_, body_, small_body_, queued_;
  ReadTurns::Ticket turn_ = 0;  // Not 0: it waits for its peer's next turn.

  uint64_t sent_bytes_ = 0;      // Given to send() since the connection began.
  std::string queue_, sending_;  // What follows sending_; what uv_write has.
  Pace write_pace_;              // Of what the client takes.
  uv_write_t write_request_;
  uv_shutdown_t shutdown_request_;
};

}  // namespace weir::net
