// ReadTurns: how much of one turn of the loop the connections of one peer may take.
//
// The loop reads whatever is readable before it comes to anything else. So a peer that sends on a
// thousand connections at once would make every other peer wait for all of that. Reading is counted
// here by peer; when a peer has had its part, its connections wait, first come, first served, while
// the others go on in the same turn and the loop writes what it has to write.
//
// Threads: the loop's.
//
// Invariants:
// (1) A peer is kept while it has been counted in this turn or has a connection that waits.
// (2) A waiting connection is named by exactly one ticket; it leaves before it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "net/peer.h"

namespace weir::net {

class HttpConnection;

class ReadTurns {
 public:
  // Costs are in bytes of headers, of which the parser takes about 1 GB a second: 1 us is 1 KiB.
  // A peer's part is then about a quarter of a millisecond, four reads of a full buffer.
  static constexpr size_t kPeerCost = 256 << 10;
  // What those that have waited begin in one turn: a millisecond, whatever the number of peers.
  static constexpr size_t kTurnCost = 4 * kPeerCost;
  // A read costs at least a system call and some parsing.
  static constexpr size_t kReadCostMin = 2 << 10;
  // To accept and to free a connection: six system calls and some allocations.
  static constexpr size_t kAcceptCost = 16 << 10;
  // To hand a request to the application, and its answer to the kernel.
  static constexpr size_t kRequestCost = 8 << 10;
  // A part of a TLS handshake: a signature takes a tenth of a millisecond (P-256) or more.
  static constexpr size_t kHandshakeCost = 128 << 10;
  // Connections accepted in one turn, whose peers are not known before. A quarter of kTurnCost.
  static constexpr int32_t kAccepts = 16;

  void count(PeerId peer, size_t cost) { peers_[peer].used += cost; }
  // Counts a read in the same way: what the peer's next ones are expected to cost follows it.
  void count_read(PeerId peer, size_t cost);
  // The peer has had its part of this turn.
  bool had_part(PeerId peer) const;
  // It has, or connections of it wait already: a further one is to wait after them.
  bool must_wait(PeerId peer) const;

  using Ticket = uint64_t;  // 0 is none.
  // Puts a connection at the end of its peer's queue.
  Ticket wait(PeerId peer, HttpConnection* connection);
  // The connection waits no more.
  void leave(PeerId peer, Ticket ticket);
  bool any_waiting() const { return waiting_ > 0; }

  // A new turn of the loop. Adds to `go_on`, with peers in turn, the connections that wait no more.
  void begin(std::vector<HttpConnection*>& go_on);

 private:
  struct Peer {
    size_t used = 0;
    // What a read costs: an average of the last ones, at first that of a short request.
    size_t expected = kReadCostMin + kRequestCost;
    std::map<Ticket, HttpConnection*> waiting;
  };

  HttpConnection* take_first(Peer& peer);
  void reset();

  std::unordered_map<PeerId, Peer> peers_;
  std::vector<PeerId> order_;  // Scratch of begin().
  Ticket last_ticket_ = 0;
  PeerId last_peer_ = 0;  // That had the last place of a turn; the next one begins after it.
  size_t waiting_ = 0;
};

}  // namespace weir::net
