#include "net/digest.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

std::string digest(Digest::Kind kind, std::string_view text, size_t piece) {
  Digest digest(kind);
  for (size_t at = 0; at < text.size(); at += piece) digest.add(text.substr(at, piece));
  return digest.finish();
}

// The vectors of FIPS 180.
TEST(Digest, IsThatOfTheStandardHoweverTheBytesCome) {
  constexpr std::string_view kText = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const size_t piece : {1, 7, 100}) {
    EXPECT_EQ(digest(Digest::Kind::kSha1, kText, piece),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    EXPECT_EQ(digest(Digest::Kind::kSha256, kText, piece),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  }
  EXPECT_EQ(digest(Digest::Kind::kSha1, "", 1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

}  // namespace
}  // namespace weir::net
