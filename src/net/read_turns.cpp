#include "net/read_turns.h"

#include <algorithm>

#include "base/check.h"

namespace weir::net {

bool ReadTurns::had_part(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.used >= kPeerCost;
}

bool ReadTurns::must_wait(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() &&
         (found->second.used >= kPeerCost || !found->second.waiting.empty());
}

void ReadTurns::count_read(PeerId peer, size_t cost) {
  Peer& counted = peers_[peer];
  counted.used += cost;
  counted.expected = std::max((7 * counted.expected + cost) / 8, kReadCostMin);
}

ReadTurns::Ticket ReadTurns::wait(PeerId peer, HttpConnection* connection) {
  peers_[peer].waiting.emplace(++last_ticket_, connection);
  ++waiting_;
  return last_ticket_;
}

void ReadTurns::leave(PeerId peer, Ticket ticket) {
  const auto found = peers_.find(peer);
  CHECK(found != peers_.end() && found->second.waiting.erase(ticket) == 1);
  --waiting_;
}

HttpConnection* ReadTurns::take_first(Peer& peer) {
  const auto first = peer.waiting.begin();
  HttpConnection* const connection = first->second;
  peer.waiting.erase(first);
  --waiting_;
  return connection;
}

void ReadTurns::begin(std::vector<HttpConnection*>& go_on) {
  std::erase_if(peers_, [](const auto& entry) { return entry.second.waiting.empty(); });
  order_.clear();
  for (auto& [id, peer] : peers_) {
    peer.used = 0;
    order_.push_back(id);
  }
  std::ranges::sort(order_);
  std::ranges::rotate(order_, std::ranges::upper_bound(order_, last_peer_));
  // One of each peer after another, as far as their parts and the turn's go.
  size_t begun = 0;
  for (bool any = true; any;) {
    any = false;
    for (const PeerId id : order_) {
      Peer& peer = peers_[id];
      if (peer.waiting.empty() || peer.used >= kPeerCost) continue;
      if (begun >= kTurnCost) return reset();
      any = true;
      peer.used += peer.expected;
      begun += peer.expected;
      last_peer_ = id;
      go_on.push_back(take_first(peer));
    }
  }
  reset();
}

// What was expected of those that go on is counted when they have read.
void ReadTurns::reset() {
  for (const PeerId id : order_) peers_[id].used = 0;
}

}  // namespace weir::net
