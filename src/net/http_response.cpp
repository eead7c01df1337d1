// Formatting of response heads.
#include "net/http_response.h"

namespace weir::net {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
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
  for (const char c : text) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
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
