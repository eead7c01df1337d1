// What a connection holds of what all connections share: its place, the memory of heads, bodies and
// answers. Where there is no room for more, another connection is given up for it, or it is
// refused.
#include <algorithm>

#include "net/http_connection.h"

namespace weir::net {

// Also of one that only begins a request, or sends it too slowly.
bool HttpConnection::take_place() {
  while (!server_.places.hold_any(place_, 1)) {
    const PeerShare* const other = server_.places.first_to_yield(place_, 1, server_.now_ms());
    if (other == nullptr) return false;
    server_.stats.yielded_idle.add();
    other->owner->close();
  }
  return true;
}

bool HttpConnection::make_room(PeerShares& shares, PeerShare& share, size_t amount,
                               Counter& yielded, std::string_view reason) {
  while (!shares.hold(share, amount)) {
    const PeerShare* const other = shares.first_to_yield(share, amount, server_.now_ms());
    if (other == nullptr || other == &share) return false;
    yielded.add();
    other->owner->give_up(reason);
  }
  return true;
}

// What has been read of heads and after them; false if there is no room for it.
bool HttpConnection::hold_head() {
  if (is_closed()) return true;
  const size_t bytes = parser_.head_memory() + answering_head_ + heap_bytes(pending_) +
                       (tls_ ? tls_->buffered_bytes() : 0);
  return make_room(server_.heads, head_, bytes, server_.stats.yielded_heads,
                   "the rest of the headers came too slowly, and others need the room");
}

// A small body finds room beside large ones. One whose length is not known counts as small until it
// is not.
bool HttpConnection::hold_body(size_t bytes) {
  if (is_closed()) return true;
  PeerShares& small = server_.small_bodies;
  if (bytes == 0) return server_.bodies.hold(body_, 0) && small.hold(small_body_, 0);
  const bool is_small = body_.held == 0 && std::max<uint64_t>(bytes, parser_.content_length()) <=
                                               server_.limits.small_body_bytes;
  if (is_small && small.hold(small_body_, bytes)) return true;
  const auto make_room_in = [&](PeerShares& shares, PeerShare& share) {
    return make_room(shares, share, bytes, server_.stats.yielded_bodies,
                     "the rest of the body came too slowly, and others need the room");
  };
  if (make_room_in(server_.bodies, body_)) return small.hold(small_body_, 0);
  return is_small && make_room_in(small, small_body_);
}

// What waits until the client takes it. One answer at a time may be larger than its peer's part: it
// has been made already, and a client that reads it frees it soon.
bool HttpConnection::hold_answer() {
  if (is_closed()) return true;
  const HttpConnection*& large = server_.large_answer;
  if (server_.answers.hold(queued_, heap_bytes(queue_) + heap_bytes(sending_))) {
    if (large == this) large = nullptr;
    return true;
  }
  if (large != nullptr && large != this) {
    server_.stats.refused_answers.add();
    return false;
  }
  large = this;
  return server_.answers.hold(queued_, 0);
}

// From when on this connection may be given up for others: while it waits for its client, except
// that a body is under way as long as it comes briskly.
void HttpConnection::update_yield() {
  const bool in_body = state_ == State::kReading && parser_.in_body();
  uint64_t from_ms = PeerShare::kNever;
  if (in_body) {
    from_ms = brisk_pace_.since_ms() + server_.limits.body_grace_ms;
  } else if (state_ == State::kReading || state_ == State::kLingering) {
    from_ms = waiting_since_ms_;
  }
  server_.places.set_yield(place_, from_ms);
  server_.heads.set_yield(head_, from_ms);
  server_.bodies.set_yield(body_, from_ms);
  server_.small_bodies.set_yield(small_body_, from_ms);
}

// Its memory, for others.
void HttpConnection::give_up(std::string_view reason) {
  const bool can_be_told = state_ == State::kReading && parser_.in_request();
  can_be_told ? refuse(408, reason) : close();
}

void HttpConnection::give_back_all() {
  parser_.abandon();  // Its body's.
  server_.places.hold_any(place_, 0);
  server_.heads.hold(head_, 0);
  server_.answers.hold(queued_, 0);
  if (server_.large_answer == this) server_.large_answer = nullptr;
}

}  // namespace weir::net
