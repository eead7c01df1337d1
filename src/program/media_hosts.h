// MediaHosts: which web addresses images may be fetched from, as --allow-remote-media says it. A
// server that fetches what strangers name must not become their way into its own network: so names
// are looked up, and where they lead is held against the list once more.
//
// An entry is a host's name, *.NAME for all below it, * for any, or an IP address, with /BITS for a
// network of them (IPv6 in brackets or not). Addresses that are not public (loopback, private, link-
// local) are asked only where an entry names them as addresses, whatever names stand for them.
//
// Threads: immutable once made.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir {

class MediaHosts {
 public:
  // The error names the entry that is none.
  static Result<MediaHosts> parse(std::span<const std::string> entries);

  // `host`: as it is written in an address, a name or an IP address, IPv6 in brackets.
  bool allows_host(std::string_view host) const;
  // Of what a host that is allowed turned out to be.
  bool allows_address(const sockaddr* address) const;
  // The entries, for messages.
  const std::string& shown() const { return shown_; }

 private:
  // IPv4 as IPv6 has it, ::ffff:0:0/96.
  using Address = std::array<uint8_t, 16>;
  struct Network {
    Address address{};
    int bits = 128;
  };

  static bool read_address(std::string_view text, Address& out);
  static bool read_network(std::string_view text, Network& out);
  bool within(const Address& address) const;

  bool any_ = false;
  std::vector<std::string> names_;     // In lower case; ".NAME" for all below NAME.
  std::vector<Network> networks_;
  std::string shown_;
};

}  // namespace weir
