// The head of a response as bytes: status line, headers, what every answer carries.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace weir::net {

// "Not Found"; "Unknown" for a status that is not in RFC 9110.
std::string_view reason_phrase(int status);

// The Date header's value; formatted once a second.
class HttpDate {
 public:
  std::string_view text(time_t now);

 private:
  time_t formatted_ = -1;
  std::string text_;
};

enum class BodyKind : uint8_t {
  kLength,    // Content-Length.
  kChunked,   // Transfer-Encoding: chunked.
  kUntilEnd,  // Ends with the connection: a stream to an HTTP/1.0 client.
};

struct ResponseHead {
  int status = 200;
  BodyKind kind = BodyKind::kLength;
  size_t content_length = 0;
  bool keep_alive = true;
  std::string_view date = {};
};

// 1xx, 204 and 304 have no body and no length, whatever the application gave.
bool has_no_body(int status);

// Line breaks and NULs in a header's name or value, which would end it early, become spaces.
void append_head(std::string& out, const ResponseHead& head, const HttpResponder::Headers& headers);

}  // namespace weir::net
