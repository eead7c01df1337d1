#include "hub/address.h"

#include <gtest/gtest.h>

namespace weir::hub {
namespace {

TEST(AddressKind, TellsWhatIsWithinANetwork) {
  using enum AddressKind;
  for (const auto& [host, kind] :
       std::initializer_list<std::pair<const char*, AddressKind>>{{"1.1.1.1", kPublic},
                                                                  {"172.32.0.1", kPublic},
                                                                  {"192.169.0.1", kPublic},
                                                                  {"100.128.0.1", kPublic},
                                                                  {"10.0.0.1", kPrivate},
                                                                  {"172.31.255.255", kPrivate},
                                                                  {"192.168.1.1", kPrivate},
                                                                  {"100.64.0.1", kPrivate},
                                                                  {"127.0.0.1", kLoopback},
                                                                  {"127.1", kLoopback},
                                                                  {"0x7f000001", kLoopback},
                                                                  {"2130706433", kLoopback},
                                                                  {"0.0.0.0", kOther},
                                                                  {"169.254.169.254", kOther},
                                                                  {"224.0.0.1", kOther},
                                                                  {"255.255.255.255", kOther},
                                                                  {"[::1]", kLoopback},
                                                                  {"[::]", kOther},
                                                                  {"[fe80::1%25eth0]", kOther},
                                                                  {"[fd00::1]", kPrivate},
                                                                  {"[ff02::1]", kOther},
                                                                  {"[2606:4700::1]", kPublic},
                                                                  {"[::ffff:127.0.0.1]", kLoopback},
                                                                  {"[::ffff:10.0.0.1]", kPrivate},
                                                                  {"[64:ff9b::a9fe:a9fe]", kOther},
                                                                  {"[2002:7f00:1::]", kLoopback}}) {
    const auto found = literal_address_kind(host);
    ASSERT_TRUE(found) << host;
    EXPECT_EQ(*found, kind) << host;
  }
  for (const char* name : {"huggingface.co", "localhost", "a.b", ""})
    EXPECT_FALSE(literal_address_kind(name)) << name;
}

}  // namespace
}  // namespace weir::hub
