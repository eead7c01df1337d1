// HttpParser on arbitrary bytes in arbitrary pieces. The first byte seeds the pieces. Checked: it
// never crashes, keeps its limits, and says the same for the pieces as for the whole.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/http_parser.h"
#include "net/routes.h"

namespace {

constexpr size_t kHeaderBytesMax = 600;
constexpr size_t kBodyBytesMax = 500;

// The requests and the end, as text. Pieces grow with `seed`; 0: one piece.
std::string parse(std::string_view bytes, uint32_t seed) {
  weir::net::HttpParser parser(kHeaderBytesMax, kBodyBytesMax);
  std::string said;
  while (!bytes.empty()) {
    size_t size = bytes.size();
    if (seed != 0) {
      seed = seed * 1664525 + 1013904223;
      size = std::min<size_t>(size, 1 + (seed >> 24) % 16);
    }
    const std::string copy(bytes.substr(0, size));  // Its own memory: reading past its end is seen.
    bytes.remove_prefix(size);
    std::string_view piece = copy;
    for (bool more = true; more;) {
      switch (parser.feed(piece)) {
        case weir::net::HttpParser::Event::kMore:
          CHECK(piece.empty());
          more = false;
          break;
        case weir::net::HttpParser::Event::kHeaders:
          CHECK(parser.content_length() <= kBodyBytesMax);
          if (parser.request().query == "discard") parser.discard_body();
          break;
        case weir::net::HttpParser::Event::kRequest: {
          const weir::net::HttpRequest request = parser.take_request();
          CHECK(request.body.size() <= kBodyBytesMax);
          CHECK(!request.path.empty() && (request.path[0] == '/' || request.path == "*"));
          said += request.method + " " + request.path + "?" + request.query + "\n";
          for (const auto& [name, value] : request.headers) {
            CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
            said += name + ":" + value + "\n";
          }
          said += request.body + (parser.keep_alive() ? "\nkeep\n" : "\nclose\n");
          if (!parser.keep_alive()) return said;
          break;
        }
        case weir::net::HttpParser::Event::kError:
          CHECK(parser.error_status() >= 400 && !parser.error_message().empty());
          return said + std::to_string(parser.error_status());
      }
    }
  }
  return said + (parser.in_request() ? "more" : "end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  CHECK(parse(bytes, 0) == parse(bytes, data[0] + 1u));

  static const weir::net::Routes routes = [] {
    weir::net::Routes r;
    const auto handler = [](auto&&...) {};
    r.add("GET", "/v1/models", handler);
    r.add("GET", "/v1/models/{id}", handler);
    r.add("POST", "/a/{b}/c", handler);
    return r;
  }();
  const auto match = routes.match("GET", bytes.substr(0, bytes.find_first_of(" \r\n")));
  CHECK((match.status == 200) == (match.handler != nullptr));
  return 0;
}
