#include "net/peer_shares.h"

#include "base/check.h"

namespace weir::net {

namespace {

// The peers that hold most and are looked at for something that yields. More would have to be busy
// at the same time; a bound keeps the search from costing more than what it finds.
constexpr int kPeersLookedAt = 32;
// A peer that holds no more than this part of all takes from those that hold less, too: when many
// have a little each, one of them must give way.
constexpr size_t kLittle = 64;

}  // namespace

bool PeerShares::change(PeerShare& share, size_t amount, bool fairly) {
  if (amount == share.held) return true;
  const size_t before = budget_.held_by(share.peer);
  if (amount < share.held) {
    budget_.give_back(share.peer, share.held - amount);
  } else {
    const size_t more = amount - share.held;
    if (!(fairly ? budget_.take(share.peer, more) : budget_.take_more(share.peer, more)))
      return false;
  }
  share.held = amount;
  if (yielding_.contains(share.peer)) {
    by_held_.erase({before, share.peer});
    by_held_.emplace(budget_.held_by(share.peer), share.peer);
  }
  if (amount == 0) set_yield(share, PeerShare::kNever);
  return true;
}

bool PeerShares::hold(PeerShare& share, size_t amount) { return change(share, amount, true); }

bool PeerShares::hold_any(PeerShare& share, size_t amount) { return change(share, amount, false); }

void PeerShares::set_yield(PeerShare& share, uint64_t from_ms) {
  if (share.held == 0) from_ms = PeerShare::kNever;
  const uint64_t before = std::exchange(share.yields_from_ms, from_ms);
  if (before == from_ms) return;
  Yielding& yielding = yielding_[share.peer];
  if (yielding.empty()) by_held_.emplace(budget_.held_by(share.peer), share.peer);
  if (before != PeerShare::kNever) yielding.erase({before, &share});
  if (from_ms != PeerShare::kNever) yielding.emplace(from_ms, &share);
  if (!yielding.empty()) return;
  yielding_.erase(share.peer);
  by_held_.erase({budget_.held_by(share.peer), share.peer});
}

PeerShare* PeerShares::first_to_yield(const PeerShare& share, size_t amount,
                                      uint64_t now_ms) const {
  const size_t wanted = budget_.held_by(share.peer) - share.held + amount;
  const bool little = wanted <= budget_.bytes_max() / kLittle;
  int looked_at = 0;
  for (auto peer = by_held_.rbegin(); peer != by_held_.rend() && looked_at < kPeersLookedAt;
       ++peer, ++looked_at) {
    if (peer->first < wanted && peer->second != share.peer && !little) continue;
    const auto& [from_ms, first] = *yielding_.at(peer->second).begin();
    if (from_ms <= now_ms) return first;
  }
  return nullptr;
}

void PeerShares::check() const {
  CHECK(yielding_.size() == by_held_.size());
  for (const auto& [peer, yielding] : yielding_) {
    CHECK(!yielding.empty() && by_held_.contains({budget_.held_by(peer), peer}));
    for (const auto& [from_ms, share] : yielding)
      CHECK(share->held > 0 && share->peer == peer && share->yields_from_ms == from_ms);
  }
}

}  // namespace weir::net
