// PeerShares: something that all connections share (memory, places), told apart by peer, and the
// question which connection gives way when there is nothing left for another.
//
// No peer may keep the others from their part (FairBudget). What yields is given up for others in
// this order: of the peer that holds most, the share that has waited longest.
//
// Threads: the loop's.
//
// Invariants:
// (1) A share that yields holds something; it is in its peer's list, and its peer in by_held_ with
//     what it holds.
// (2) A share belongs to one PeerShares, and has given back what it holds before it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/fair_budget.h"
#include "net/peer.h"

namespace weir::net {

class HttpConnection;

// What one connection holds.
struct PeerShare {
  static constexpr uint64_t kNever = UINT64_MAX;

  HttpConnection* owner = nullptr;
  PeerId peer = 0;
  size_t held = 0;
  uint64_t yields_from_ms = kNever;  // May be given up for others from then on.
};

class PeerShares {
 public:
  explicit PeerShares(size_t most) : budget_(most) {}

  // The share holds so much from now on, more or less than before; false, and all is as it was, if
  // that were more than its peer's part.
  bool hold(PeerShare& share, size_t amount);
  // Does the same as far as there is room at all, beyond the peer's part.
  bool hold_any(PeerShare& share, size_t amount);
  // A share that holds nothing never yields.
  void set_yield(PeerShare& share, uint64_t from_ms);

  // What is to be given up so that `share` may hold `amount`; null: nothing. It may be the share
  // itself. The peers that hold less than the share's would are spared, unless that is little.
  PeerShare* first_to_yield(const PeerShare& share, size_t amount, uint64_t now_ms) const;

  size_t used() const { return budget_.used(); }
  size_t held_by(PeerId peer) const { return budget_.held_by(peer); }

  // Walks everything and CHECKs the invariants.
  void check() const;

 private:
  using Yielding = std::set<std::pair<uint64_t, PeerShare*>>;  // The first has waited longest.

  bool change(PeerShare& share, size_t amount, bool fairly);

  FairBudget budget_;
  std::unordered_map<PeerId, Yielding> yielding_;  // Of peers that have any.
  std::set<std::pair<size_t, PeerId>> by_held_;    // The same peers.
};

}  // namespace weir::net
