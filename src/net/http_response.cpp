// Formatting of response heads.
#include "net/http_response.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::net {

namespace {

constexpr std::pair<int, std::string_view> kReasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {529, "Overloaded"},  // Anthropic's.
};

}  // namespace

std::string_view reason_phrase(int status) {
  const auto* found = std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  return found == std::end(kReasons) ? "Unknown" : found->second;
}

std::string_view HttpDate::text(time_t now) {
  if (now != formatted_) {
    formatted_ = now;
    tm parts{};
    gmtime_r(&now, &parts);
    char buf[64];
    // The process keeps the "C" locale, so the names are English as RFC 9110 wants them.
    text_.assign(buf, strftime(buf, sizeof buf, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return text_;
}

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

namespace {

void append_clean(std::string& out, std::string_view text) {
  const size_t begin = out.size();
  out += text;
  for (size_t i = begin; i < out.size(); ++i)
    if (out[i] == '\r' || out[i] == '\n' || out[i] == '\0') out[i] = ' ';
}

}  // namespace

void append_head(std::string& out, const ResponseHead& head,
                 const HttpResponder::Headers& headers) {
  out += "HTTP/1.1 ";
  out += std::to_string(head.status);
  out += ' ';
  out += reason_phrase(head.status);
  out += "\r\n";
  for (const auto& [name, value] : headers) {
    append_clean(out, name);
    out += ": ";
    append_clean(out, value);
    out += "\r\n";
  }
  if (has_no_body(head.status)) {
    // Neither length nor coding.
  } else if (head.kind == BodyKind::kLength) {
    out += "Content-Length: ";
    out += std::to_string(head.content_length);
    out += "\r\n";
  } else if (head.kind == BodyKind::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += "Date: ";
  out += head.date;
  out += head.keep_alive ? "\r\nConnection: keep-alive\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
}

}  // namespace weir::net
