#include "hub/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace weir::hub {

namespace {

struct Network4 {
  uint32_t address = 0;
  int bits = 0;
  AddressKind kind = AddressKind::kOther;
};

constexpr uint32_t ipv4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// IANA's registry of special addresses, as far as they are not to be reached from everywhere.
constexpr std::array kNetworks4 = {
    Network4{ipv4(0, 0, 0, 0), 8, AddressKind::kOther},
    Network4{ipv4(10, 0, 0, 0), 8, AddressKind::kPrivate},
    Network4{ipv4(100, 64, 0, 0), 10, AddressKind::kPrivate},
    Network4{ipv4(127, 0, 0, 0), 8, AddressKind::kLoopback},
    Network4{ipv4(169, 254, 0, 0), 16, AddressKind::kOther},
    Network4{ipv4(172, 16, 0, 0), 12, AddressKind::kPrivate},
    Network4{ipv4(192, 0, 0, 0), 24, AddressKind::kOther},
    Network4{ipv4(192, 0, 2, 0), 24, AddressKind::kOther},
    Network4{ipv4(192, 168, 0, 0), 16, AddressKind::kPrivate},
    Network4{ipv4(198, 18, 0, 0), 15, AddressKind::kOther},
    Network4{ipv4(198, 51, 100, 0), 24, AddressKind::kOther},
    Network4{ipv4(203, 0, 113, 0), 24, AddressKind::kOther},
    Network4{ipv4(224, 0, 0, 0), 3, AddressKind::kOther},
};

AddressKind kind_of(uint32_t address) {
  for (const Network4& network : kNetworks4)
    if ((address ^ network.address) >> (32 - network.bits) == 0) return network.kind;
  return AddressKind::kPublic;
}

using Bytes16 = std::array<unsigned char, 16>;

bool begins_with(const Bytes16& address, std::initializer_list<unsigned char> bytes) {
  return std::equal(bytes.begin(), bytes.end(), address.begin());
}

uint32_t ipv4_at(const Bytes16& address, size_t at) {
  return ipv4(address[at], address[at + 1], address[at + 2], address[at + 3]);
}

AddressKind kind_of(const Bytes16& address) {
  if (begins_with(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}))
    return kind_of(ipv4_at(address, 12));  // ::ffff:0:0/96, mapped.
  if (begins_with(address, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}))
    return kind_of(ipv4_at(address, 12));  // 64:ff9b::/96, NAT64.
  if (begins_with(address, {0x20, 0x02})) return kind_of(ipv4_at(address, 2));  // 6to4.
  Bytes16 loopback{};
  loopback[15] = 1;
  if (address == loopback) return AddressKind::kLoopback;
  if ((address[0] & 0xfe) == 0xfc) return AddressKind::kPrivate;  // fc00::/7.
  // 2000::/3 is what there is of the public ones.
  return (address[0] & 0xe0) == 0x20 ? AddressKind::kPublic : AddressKind::kOther;
}

}  // namespace

AddressKind address_kind(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return kind_of(ntohl(in.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    Bytes16 bytes{};
    std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
    return kind_of(bytes);
  }
  return AddressKind::kOther;
}

std::optional<AddressKind> literal_address_kind(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string text(host.substr(0, host.find('%')));  // Without a zone.
  sockaddr_in in{};
  in.sin_family = AF_INET;
  // inet_aton() reads what resolvers read: 127.1, 0x7f000001.
  if (::inet_aton(text.c_str(), &in.sin_addr) != 0)
    return address_kind(reinterpret_cast<const sockaddr*>(&in));
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, text.c_str(), &in6.sin6_addr) == 1)
    return address_kind(reinterpret_cast<const sockaddr*>(&in6));
  return std::nullopt;
}

}  // namespace weir::hub
