// HttpParser without sockets: the same events however the bytes are split.
#include "net/http_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weir::net {
namespace {

// Everything the parser says, as text. `next_size` gives the size of each piece fed.
template <class NextSize>
std::string parse(std::string_view bytes, NextSize next_size, bool discard = false) {
  HttpParser parser(2'000, 5'000);
  std::string said;
  while (!bytes.empty()) {
    std::string copy(bytes.substr(0, next_size()));  // Its own memory, so that ASan sees its end.
    bytes.remove_prefix(copy.size());
    std::string_view piece = copy;
    while (true) {
      const HttpParser::Event event = parser.feed(piece);
      if (event == HttpParser::Event::kMore) break;
      if (event == HttpParser::Event::kError)
        return said + "E" + std::to_string(parser.error_status()) + " " + parser.error_message();
      if (event == HttpParser::Event::kHeaders) {
        said += parser.request().method + " " + parser.request().path + "?" +
                parser.request().query + (parser.keep_alive() ? " keep" : " close") +
                (parser.is_chunked() ? " chunked " : " ") + std::to_string(parser.content_length());
        if (discard) parser.discard_body();
        continue;
      }
      const HttpRequest request = parser.take_request();
      for (const auto& [name, value] : request.headers) said += "\n  " + name + "=" + value;
      said += "\n  [" + request.body + "]\n";
      if (!parser.keep_alive()) return said;
    }
  }
  return said + (parser.in_request() ? "unfinished" : "");
}

const std::string kRequests[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET /a?b=c HTTP/1.1\r\nhOsT: a\r\nX: 1 \r\n 2\r\n\t3\r\nEmpty:\r\nY: \t z\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;e=\"q\"\r\n"
    "0123456789\r\n0\r\nT: 1\r\n\r\n",
    "GET http://h/p?q#f HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /k HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
};

const std::string kLastRequests[] = {
    "GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nnever read",
    "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(3'000, 'x') + "\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" +
        std::string(5'000, 'b') + "\r\n1\r\nc\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nY: \r\n \t\r\n\t z\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
    "BAD",
    "GET / HTT",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
};

TEST(HttpParser, SaysTheSameHoweverTheBytesAreSplit) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (unsigned i = random() % 6; i > 0; --i) bytes += kRequests[random() % std::size(kRequests)];
    bytes += kLastRequests[random() % std::size(kLastRequests)];
    const std::string whole = parse(bytes, [] { return size_t{1} << 20; });
    EXPECT_EQ(parse(bytes, [] { return size_t{1}; }), whole) << bytes;
    EXPECT_EQ(parse(bytes, [&] { return size_t{1 + random() % 20}; }), whole) << bytes;
  }
}

TEST(HttpParser, ReadsWhatWasMeant) {
  const auto whole = [](const std::string& bytes) {
    return parse(bytes, [] { return size_t{1} << 20; });
  };
  EXPECT_EQ(whole(kRequests[1]), "GET /a?b=c keep 0\n  host=a\n  x=1 2 3\n  empty=\n  y=z\n  []\n");
  EXPECT_EQ(whole(kRequests[3]),
            "POST /x? keep chunked 0\n  host=a\n  transfer-encoding=Chunked\n  [abc0123456789]\n");
  EXPECT_EQ(whole(kRequests[4]), "GET /p?q keep 0\n  host=h\n  []\n");
  EXPECT_EQ(whole(kRequests[5]), "GET /k? keep 0\n  connection=keep-alive\n  []\n");
  EXPECT_EQ(whole(kLastRequests[1]).substr(0, 4), "E431");
  EXPECT_NE(whole(kLastRequests[2]).find("E413"), std::string::npos);
}

TEST(HttpParser, RefusesAFoldBeforeAValueAndAHeaderWithoutAName) {
  for (const std::string head :
       {"Host:\r\n a", "Host: a\r\nX: \r\n\tb", "Host: a\r\nContent-Length:\r\n 3"})
    for (const size_t size : {size_t{1} << 20, size_t{1}, size_t{7}})
      EXPECT_NE(parse("GET / HTTP/1.1\r\n" + head + "\r\n\r\nabc", [&] { return size; })
                    .find("E400 the header "),
                std::string::npos)
          << head;
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", [] { return size_t{1} << 20; }),
            "E400 a header has no name");
}

// At least what was sent, and no more than the allocator may take for it.
TEST(HttpParser, CountsTheMemoryOfAHead) {
  HttpParser parser(100'000, 1'000);
  EXPECT_EQ(parser.head_memory(), 0u);
  std::string head = "GET /" + std::string(10'000, 'p') + "?" + std::string(10'000, 'q') +
                     " HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 200; ++i)
    head += "x-header-number-" + std::to_string(1'000 + i) + ": " + std::string(200, 'v') + "\r\n";
  std::string_view bytes = head;
  EXPECT_EQ(parser.feed(bytes), HttpParser::Event::kMore);
  EXPECT_GE(parser.head_memory(), head.size() + 200 * 2 * sizeof(std::string));
  EXPECT_LE(parser.head_memory(), 2 * head.size());
  bytes = "\r\n";
  EXPECT_EQ(parser.feed(bytes), HttpParser::Event::kHeaders);
  EXPECT_EQ(parser.feed(bytes), HttpParser::Event::kRequest);
  EXPECT_EQ(parser.take_request().query.size(), 10'000u);
  EXPECT_EQ(parser.head_memory(), 0u) << "nothing stays in an idle connection";
}

TEST(HttpParser, ADiscardedBodyIsNotKeptAndTheNextOneIs) {
  EXPECT_EQ(parse(
                kRequests[2] + kRequests[3], [] { return size_t{3}; }, true),
            "POST /x? keep 5\n  host=a\n  content-length=5\n  []\n"
            "POST /x? keep chunked 0\n  host=a\n  transfer-encoding=Chunked\n  []\n");
}

}  // namespace
}  // namespace weir::net
