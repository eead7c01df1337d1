// The framing that StreamBuffer puts around what it holds.
#include "net/stream_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::net {
namespace {

TEST(StreamBuffer, FramesItsBytesAsOneChunk) {
  StreamBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.text() += "data: ";
  buffer.text() += "x\n\n";
  EXPECT_EQ(buffer.size(), 9u);
  EXPECT_EQ(buffer.view(), "data: x\n\n");
  EXPECT_EQ(buffer.as_chunk(), "9\r\ndata: x\n\n\r\n");
}

TEST(StreamBuffer, WritesSizesInHexadecimal) {
  for (const auto& [size, digits] : {std::pair<size_t, const char*>{15, "f"},
                                     {16, "10"},
                                     {255, "ff"},
                                     {256, "100"},
                                     {0xabcde, "abcde"}}) {
    StreamBuffer buffer;
    buffer.text().append(size, 'y');
    EXPECT_EQ(buffer.as_chunk(), std::string(digits) + "\r\n" + std::string(size, 'y') + "\r\n");
  }
}

TEST(StreamBuffer, IsEmptyAndUsableAfterClear) {
  StreamBuffer buffer;
  buffer.text() += "first";
  EXPECT_EQ(buffer.as_chunk(), "5\r\nfirst\r\n");
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  buffer.text() += "2nd";
  EXPECT_EQ(buffer.as_chunk(), "3\r\n2nd\r\n");
}

}  // namespace
}  // namespace weir::net
