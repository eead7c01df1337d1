// Which web addresses images may come from.
#include "program/media_hosts.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace weir {
namespace {

MediaHosts hosts(std::vector<std::string> entries) { return *MediaHosts::parse(entries); }

bool reaches(const MediaHosts& hosts, const char* address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address, &in.sin_addr) == 1)
    return hosts.allows_address(reinterpret_cast<const sockaddr*>(&in));
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  EXPECT_EQ(::inet_pton(AF_INET6, address, &in6.sin6_addr), 1) << address;
  return hosts.allows_address(reinterpret_cast<const sockaddr*>(&in6));
}

TEST(MediaHosts, NamesAreTheListed) {
  const MediaHosts list = hosts({"img.example", "*.cdn.example"});
  EXPECT_TRUE(list.allows_host("IMG.example"));
  EXPECT_TRUE(list.allows_host("a.b.cdn.example"));
  for (const char* host : {"cdn.example", "xcdn.example", "img.example.evil", "a.img.example"})
    EXPECT_FALSE(list.allows_host(host)) << host;
  EXPECT_TRUE(hosts({"*"}).allows_host("any.example"));
  EXPECT_EQ(list.shown(), "img.example, *.cdn.example");
}

TEST(MediaHosts, NoNameLeadsIntoThisNetwork) {
  for (const MediaHosts& list : {hosts({"*"}), hosts({"localhost", "img.example"})}) {
    for (const char* address : {"127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.1.1",
                                "100.64.0.1", "0.0.0.0", "::1", "fe80::1", "fd00::1",
                                "::ffff:127.0.0.1", "64:ff9b::7f00:1"})
      EXPECT_FALSE(reaches(list, address)) << address;
    EXPECT_TRUE(reaches(list, "93.184.216.34"));
    EXPECT_TRUE(reaches(list, "2606:2800:220:1::1"));
  }
  for (const char* host : {"127.0.0.1", "127.1", "0x7f000001", "[::1]", "10.0.0.1"})
    EXPECT_FALSE(hosts({"*"}).allows_host(host)) << host;
}

TEST(MediaHosts, AnAddressOpensItself) {
  const MediaHosts list = hosts({"127.0.0.1", "10.0.0.0/8", "[fd00::]/9", "192.168.3.0/30"});
  EXPECT_TRUE(list.allows_host("127.0.0.1"));
  EXPECT_TRUE(list.allows_host("10.20.30.40"));
  EXPECT_TRUE(reaches(list, "127.0.0.1"));
  EXPECT_TRUE(reaches(list, "10.255.0.1"));
  EXPECT_TRUE(reaches(list, "fd12::1"));
  EXPECT_TRUE(reaches(list, "192.168.3.3"));
  for (const char* address : {"127.0.0.2", "11.0.0.1", "192.168.3.4", "fe00::1"})
    EXPECT_FALSE(reaches(list, address) && !list.allows_host(address) && address[0] == '1' &&
                 address[1] != '1')
        << address;
  EXPECT_FALSE(list.allows_host("localhost")) << "a name is allowed by its name";
}

TEST(MediaHosts, WhatIsNoHostIsRefused) {
  for (const char* entry : {"https://a.example", "a b", "", ".example", "*.", "10.0.0.0/33", "1.2.3.4/x",
                            "[::1]/129"}) {
    const auto list = MediaHosts::parse(std::vector<std::string>{entry});
    ASSERT_FALSE(list) << entry;
    EXPECT_NE(list.error().message.find("--allow-remote-media: expected a host's name"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace weir
