#include "program/media_hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/ascii.h"
#include "base/concat.h"
#include "hub/address.h"

namespace weir {

namespace {

// Where IPv4 begins in IPv6.
constexpr size_t kMappedBytes = 12;
constexpr int kMappedBits = 8 * kMappedBytes;

bool is_name(std::string_view text) {
  return !text.empty() && !text.starts_with('.') && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ascii_lower);
  return out;
}

}  // namespace

bool MediaHosts::read_address(std::string_view text, Address& out) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string whole(text);
  out = {};
  if (::inet_pton(AF_INET6, whole.c_str(), out.data()) == 1) return true;
  out[kMappedBytes - 1] = out[kMappedBytes - 2] = 0xff;
  return ::inet_pton(AF_INET, whole.c_str(), out.data() + kMappedBytes) == 1;
}

bool MediaHosts::read_network(std::string_view text, Network& out) {
  const size_t slash = text.rfind('/');
  if (!read_address(text.substr(0, slash), out.address)) return false;
  if (slash == std::string_view::npos) return true;
  const bool v4 = text.find(':') == std::string_view::npos;
  const std::string_view digits = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  if (bits < 0 || bits > (v4 ? 32 : 128)) return false;
  out.bits = bits + (v4 ? kMappedBits : 0);
  return true;
}

Result<MediaHosts> MediaHosts::parse(std::span<const std::string> entries) {
  MediaHosts hosts;
  for (const std::string& entry : entries) {
    const std::string text = lower(entry);
    Network network;
    if (text == "*") {
      hosts.any_ = true;
    } else if (read_network(text, network)) {
      hosts.networks_.push_back(network);
    } else if (text.starts_with("*.") && is_name(text.substr(2))) {
      hosts.names_.push_back(text.substr(1));
    } else if (is_name(text)) {
      hosts.names_.push_back(text);
    } else {
      return fail(ErrorCode::kConfig,
                  concat({"--allow-remote-media: expected a host's name, *.NAME, *, or an IP "
                          "address with or without /BITS; found \"",
                          entry, "\""}));
    }
    if (!hosts.shown_.empty()) hosts.shown_ += ", ";
    hosts.shown_ += entry;
  }
  return hosts;
}

bool MediaHosts::within(const Address& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) {
    const auto whole = static_cast<size_t>(network.bits / 8);
    const int rest = network.bits % 8;
    if (!std::equal(address.begin(), address.begin() + static_cast<ptrdiff_t>(whole),
                    network.address.begin()))
      return false;
    return rest == 0 || (address[whole] ^ network.address[whole]) >> (8 - rest) == 0;
  });
}

bool MediaHosts::allows_host(std::string_view host) const {
  Address address;
  if (read_address(host, address) && within(address)) return true;
  // Spelled otherwise, it is an address all the same: 127.1, 0x7f000001.
  if (hub::literal_address_kind(host).value_or(hub::AddressKind::kPublic) !=
      hub::AddressKind::kPublic)
    return false;
  if (any_) return true;
  const std::string name = lower(host);
  return std::ranges::any_of(names_, [&](const std::string& known) {
    return known.starts_with('.') ? name.ends_with(known) && name.size() > known.size()
                                  : name == known;
  });
}

bool MediaHosts::allows_address(const sockaddr* address) const {
  if (hub::address_kind(address) == hub::AddressKind::kPublic) return true;
  Address bytes{};
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    bytes[kMappedBytes - 1] = bytes[kMappedBytes - 2] = 0xff;
    std::memcpy(bytes.data() + kMappedBytes, &in.sin_addr, sizeof in.sin_addr);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  } else {
    return false;
  }
  return within(bytes);
}

}  // namespace weir
