#include "net/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>

namespace weir::net {
namespace {

PeerId of_ipv4(const std::string& text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(std::hash<std::string>()(text)));
  EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &v4.sin_addr), 1);
  return peer_id(address);
}

PeerId of_ipv6(const std::string& text) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1);
  return peer_id(address);
}

TEST(Peer, AddressesAreToldApart) {
  EXPECT_NE(of_ipv4("127.0.0.1"), of_ipv4("127.0.0.2"));
  EXPECT_NE(of_ipv4("10.0.0.1"), of_ipv4("11.0.0.1"));
  EXPECT_NE(of_ipv6("2001:db8::1"), of_ipv6("2001:db8:0:1::1"));
  for (const char* any : {"127.0.0.1", "255.255.255.255"}) EXPECT_NE(of_ipv4(any), kUnixPeer);
}

TEST(Peer, OneClientIsOnePeer) {
  EXPECT_EQ(of_ipv4("192.168.1.9"), of_ipv6("::ffff:192.168.1.9"));
  EXPECT_EQ(of_ipv6("2001:db8:7:8::1"), of_ipv6("2001:db8:7:8:ffff:1:2:3"));
}

}  // namespace
}  // namespace weir::net
