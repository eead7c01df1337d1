// SseParser: events however the bytes are split.
#include "net/sse_parser.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::net {
namespace {

// Events as "name|data"; the error, if there is one, last.
std::vector<std::string> parse(std::string_view bytes, size_t step, size_t event_bytes_max = 1000) {
  std::vector<std::string> events;
  SseParser parser(
      [&](std::string_view name, std::string_view data) {
        events.push_back(std::string(name) + "|" + std::string(data));
      },
      event_bytes_max);
  bool good = true;
  for (; good && !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size())))
    good = parser.feed(bytes.substr(0, step));
  if (!good || !parser.finish()) events.push_back("error: " + parser.error());
  return events;
}

using Events = std::vector<std::string>;

TEST(SseParser, ReadsEventsHoweverTheyAreSplit) {
  const std::string stream =
      "data: {\"a\":1}\n\n"
      ": keep-alive\n\n"
      "event: message_stop\r\ndata: one\r\ndata:two\r\ndata\r\n\r\n"
      "id: 5\rretry: 10\rdata:  spaced\r\r"
      "data: [DONE]\n\n";
  const Events expected = {"|{\"a\":1}", "message_stop|one\ntwo\n", "| spaced", "|[DONE]"};
  for (size_t step = 1; step <= stream.size(); ++step) EXPECT_EQ(parse(stream, step), expected);
}

TEST(SseParser, RefusesWhatABrowserWouldPassOver) {
  EXPECT_EQ(parse("data: x\n", 100), (Events{"error: the stream ended within an event"}));
  EXPECT_EQ(parse("data: x", 100), (Events{"error: the stream ended within an event"}));
  EXPECT_EQ(parse("{\"error\":1}\n\n", 100), (Events{"error: unknown field \"{\"error\"\""}));
  EXPECT_EQ(parse("event: x\n\n", 100), (Events{"error: the event \"x\" has no data"}));
}

TEST(SseParser, BoundsAnEvent) {
  const Events error = {"error: an event is larger than 50 bytes"};
  EXPECT_EQ(parse("data: " + std::string(100, 'x') + "\n\n", 7, 50), error);
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "data: yyyyyyyy\n";
  EXPECT_EQ(parse(lines + "\n", 7, 50), error);
}

}  // namespace
}  // namespace weir::net
