// HttpParser turns the bytes of one connection into requests: llhttp, and what it leaves to its
// user (limits, Host, framing rules, folded lines). Pure: it knows no socket and no clock.
//
// Threads: its owner's.
//
// Invariants:
// (1) It holds at most one request, of at most header_bytes_max + body_bytes_max bytes. Its body
//     holds no more than BodyMemory has granted, until the request is taken or given up.
// (2) After kError or abandon() nothing more may be fed: the borders between requests are lost.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace weir::net {

// Grants the memory of a body while it arrives.
class BodyMemory {
 public:
  // The body holds so many bytes from now on; false, and all is as it was, if there is no room for
  // them. Nothing (0) can always be held.
  virtual bool hold_body(size_t bytes) = 0;

 protected:
  ~BodyMemory() = default;
};

// What a string has on the heap, with what the allocator rounds up to (an eighth at the most).
inline size_t heap_bytes(const std::string& text) {
  constexpr size_t kWithin = 15, kAllocated = 8;
  return text.capacity() <= kWithin ? 0 : text.capacity() + text.capacity() / 8 + kAllocated;
}

class HttpParser {
 public:
  enum class Event : uint8_t {
    kMore,     // Everything was read; more bytes are needed.
    kHeaders,  // request() has all but its body. Feed on.
    kRequest,  // request() is complete: take it before feeding on.
    kError,    // error_status() and error_message() say why.
  };

  // `bodies` may be nullptr: no common bound. It outlives the parser.
  HttpParser(size_t header_bytes_max, size_t body_bytes_max, BodyMemory* bodies = nullptr);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Reads from `bytes`, and removes what was read from it, up to the next event. After kHeaders
  // feed again even if `bytes` is empty: a request without a body is complete.
  Event feed(std::string_view& bytes);

  const HttpRequest& request() const { return request_; }
  HttpRequest take_request();
  // For callers that look at request() from kHeaders on.
  void set_peer(PeerId peer_id) { request_.peer_id = peer_id; }
  // Gives up reading, and gives what is known of the request, without its body. It holds no memory
  // any more.
  HttpRequest abandon();

  // What the head holds in memory that has come so far, its body apart.
  size_t head_memory() const;

  // A byte of a request has come that is not yet complete.
  bool in_request() const { return phase_ != Phase::kBetween; }
  bool in_body() const { return phase_ == Phase::kBody; }

  // From kHeaders on, until the next request begins:
  bool keep_alive() const { return keep_alive_; }
  bool is_http_1_0() const { return http_1_0_; }
  bool expects_continue() const { return expects_continue_; }
  bool is_chunked() const { return chunked_; }
  uint64_t content_length() const { return content_length_; }  // 0 if chunked.
  bool has_body() const { return chunked_ || content_length_ > 0; }
  uint64_t body_bytes() const { return body_bytes_; }  // That have come, kept or not.

  // What has come of this body is dropped, and the rest is read but not kept.
  void discard_body();

  int error_status() const { return error_status_; }
  const std::string& error_message() const { return error_message_; }

  struct Impl;  // llhttp and its callbacks.

 private:
  enum class Phase : uint8_t { kBetween, kHead, kBody, kFailed };
  friend struct Impl;

  int fail(int status, std::string message);
  Event fail_syntax(int code, const char* reason);
  // What llhttp calls; each returns an llhttp error number.
  int on_target_end();
  char solid_before(const char* at) const;
  int on_header_value(const char* at, size_t length);
  int on_header_end();
  int on_head_end();
  int check_framing();
  int on_body(const char* at, size_t length);
  bool grow_body(size_t size);
  void drop_body();
  HttpRequest move_request();

  std::unique_ptr<Impl> impl_;
  const size_t header_bytes_max_;
  const size_t body_bytes_max_;
  BodyMemory* const bodies_;

  HttpRequest request_;
  std::string target_;
  std::string name_, value_;
  Phase phase_ = Phase::kBetween;
  Event event_ = Event::kMore;
  bool paused_ = false;
  bool value_begun_ = false;
  bool after_fold_ = false;  // The white space that begins a folded line is being skipped.
  bool value_folded_ = false;
  bool keep_alive_ = false;
  bool http_1_0_ = false;
  bool expects_continue_ = false;
  bool chunked_ = false;
  bool discard_ = false;
  char last_byte_ = 0;               // Of the bytes fed before;
  char last_solid_ = 0;              // the last that is no blank.
  const char* fed_begin_ = nullptr;  // Of the bytes being fed.
  uint64_t content_length_ = 0;
  size_t head_bytes_ = 0;
  size_t header_heap_bytes_ = 0;  // Of the names and values of request_.headers.
  uint64_t body_bytes_ = 0;       // Of the body itself, kept or not.
  uint64_t wire_bytes_ = 0;       // Of the body as sent, with its framing.
  int error_status_ = 0;
  std::string error_message_;
};

}  // namespace weir::net
