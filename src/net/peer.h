// PeerId: where a connection comes from, as far as one client is told from another: the address
// without its port. Of an IPv6 address it is the network of 64 bits, of which one client may use
// every address; all connections through Unix sockets are one peer's.
//
// All clients of one proxy are one peer; keys tell them apart.
//
// Threads: any.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace weir::net {

using PeerId = uint64_t;

inline constexpr PeerId kUnixPeer = uint64_t{1} << 32;  // No IPv4 address.

// IPv4, also as IPv4 in IPv6: the address. IPv6: its upper half; ::1 is the peer 0.
PeerId peer_id(const sockaddr_storage& address);

}  // namespace weir::net
