// AddressKind: how far an IP address reaches: what a hub's redirect must not lead into.
//
// Threads: any.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::hub {

enum class AddressKind : uint8_t {
  kPublic,
  kPrivate,   // 10/8, 172.16/12, 192.168/16, 100.64/10; fc00::/7.
  kLoopback,  // 127/8; ::1.
  kOther,     // Link-local, "this network", multicast, reserved: nothing a file is fetched from.
};

// IPv4 within IPv6 (mapped, 6to4, NAT64) counts as that IPv4. Neither IPv4 nor IPv6: kOther.
AddressKind address_kind(const sockaddr* address);

// Of a host that is written as an address, IPv6 in brackets. nullopt: it is a name.
std::optional<AddressKind> literal_address_kind(std::string_view host);

}  // namespace weir::hub
