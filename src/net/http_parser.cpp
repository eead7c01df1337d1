// HttpParser over llhttp. The only file of the server that includes llhttp.
#include "net/http_parser.h"

#include <llhttp.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"

namespace weir::net {

namespace {

// Real clients send about 20; each costs two strings of ours beside its bytes.
constexpr size_t kHeadersMax = 256;
// Each chunk has at least 5 bytes of framing ("1\r\n" and "\r\n"), so a body of one-byte chunks
// sends 6 bytes for one; more than that is chunk extensions or padding without end.
constexpr uint64_t kFramingPerByte = 8;
// Framing is judged where a body ends and at every multiple of this many bytes of it, so that the
// answer does not depend on how the network cut the bytes.
constexpr uint64_t kFramingStride = 4096;

// Of a header's name, in a message.
constexpr size_t kNameShownMax = 64;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

struct HttpParser::Impl {
  explicit Impl(HttpParser* self) {
    llhttp_init(&parser, HTTP_REQUEST, &settings());
    parser.data = self;
  }

  static HttpParser& self(llhttp_t* called) { return *static_cast<HttpParser*>(called->data); }

  // Trailers come through the header callbacks too; no request needs them.
  template <int (HttpParser::*Member)()>
  static int in_head(llhttp_t* called) {
    HttpParser& p = self(called);
    return p.phase_ == Phase::kHead ? (p.*Member)() : 0;
  }

  static const llhttp_settings_t& settings() {
    static const llhttp_settings_t instance = [] {
      llhttp_settings_t s;
      llhttp_settings_init(&s);
      s.on_url = [](llhttp_t* called, const char* at, size_t length) {
        self(called).target_.append(at, length);
        return 0;
      };
      s.on_url_complete = in_head<&HttpParser::on_target_end>;
      s.on_header_field = [](llhttp_t* called, const char* at, size_t length) {
        HttpParser& p = self(called);
        if (p.phase_ == Phase::kHead) p.name_.append(at, length);
        return 0;
      };
      s.on_header_value = [](llhttp_t* called, const char* at, size_t length) {
        HttpParser& p = self(called);
        return p.phase_ == Phase::kHead ? p.on_header_value(at, length) : 0;
      };
      s.on_header_value_complete = in_head<&HttpParser::on_header_end>;
      s.on_headers_complete = in_head<&HttpParser::on_head_end>;
      s.on_body = [](llhttp_t* called, const char* at, size_t length) {
        return self(called).on_body(at, length);
      };
      s.on_message_complete = [](llhttp_t* called) {
        self(called).event_ = Event::kRequest;
        return static_cast<int>(HPE_PAUSED);
      };
      return s;
    }();
    return instance;
  }

  llhttp_t parser;
};

HttpParser::HttpParser(size_t header_bytes_max, size_t body_bytes_max, BodyMemory* bodies)
    : impl_(std::make_unique<Impl>(this)),
      header_bytes_max_(header_bytes_max),
      body_bytes_max_(body_bytes_max),
      bodies_(bodies) {}

HttpParser::~HttpParser() { drop_body(); }

size_t HttpParser::head_memory() const {
  return header_heap_bytes_ + request_.headers.capacity() * sizeof(request_.headers[0]) +
         heap_bytes(request_.path) + heap_bytes(request_.query) + heap_bytes(target_) +
         heap_bytes(name_) + heap_bytes(value_);
}

HttpParser::Event HttpParser::feed(std::string_view& bytes) {
  CHECK(phase_ != Phase::kFailed && event_ != Event::kRequest);
  if (paused_) {
    llhttp_resume(&impl_->parser);
    paused_ = false;
  }
  event_ = Event::kMore;
  do {
    std::string_view part = bytes;
    if (!in_body()) {
      if (phase_ == Phase::kBetween) {
        // Some clients end a body with an empty line that its length does not count.
        const size_t first = bytes.find_first_not_of("\r\n");
        bytes.remove_prefix(std::min(first, bytes.size()));
        if (!bytes.empty()) phase_ = Phase::kHead;
        part = bytes;
      }
      if (bytes.empty()) return Event::kMore;
      part = part.substr(0, header_bytes_max_ - head_bytes_);
      if (part.empty()) {
        fail(431, std::string("the request line and headers are larger than the limit of ") +
                      std::to_string(header_bytes_max_) + " bytes");
        return Event::kError;
      }
    } else if (chunked_) {
      part = part.substr(0, kFramingStride - wire_bytes_ % kFramingStride);
    }
    // A body that is complete without a byte still needs the call.
    fed_begin_ = part.empty() ? "" : part.data();
    const bool was_body = in_body();
    const llhttp_errno_t code = llhttp_execute(&impl_->parser, fed_begin_, part.size());
    const size_t used =
        code == HPE_OK ? part.size()
                       : static_cast<size_t>(llhttp_get_error_pos(&impl_->parser) - fed_begin_);
    if (used > 0) {
      last_solid_ = solid_before(fed_begin_ + used);
      last_byte_ = fed_begin_[used - 1];
    }
    (was_body ? wire_bytes_ : head_bytes_) += used;
    bytes.remove_prefix(used);
    if (code != HPE_OK && code != HPE_PAUSED)
      return fail_syntax(code, llhttp_get_error_reason(&impl_->parser));
    if (was_body && (code == HPE_PAUSED || wire_bytes_ % kFramingStride == 0) &&
        wire_bytes_ > header_bytes_max_ + kFramingPerByte * (body_bytes_ + 1)) {
      fail(400, "the chunked body has more framing than content");
      return Event::kError;
    }
    if (code == HPE_PAUSED) {
      paused_ = true;
      return event_;
    }
  } while (!bytes.empty());
  return Event::kMore;
}

HttpRequest HttpParser::take_request() {
  CHECK(event_ == Event::kRequest);
  event_ = Event::kMore;
  phase_ = Phase::kBetween;
  discard_ = false;
  head_bytes_ = 0;
  body_bytes_ = wire_bytes_ = 0;
  return move_request();
}

HttpRequest HttpParser::abandon() {
  phase_ = Phase::kFailed;
  drop_body();
  for (std::string* text : {&target_, &name_, &value_}) std::string().swap(*text);
  return move_request();
}

HttpRequest HttpParser::move_request() {
  HttpRequest request = std::exchange(request_, HttpRequest{});
  header_heap_bytes_ = 0;
  drop_body();  // It is the taker's now.
  return request;
}

void HttpParser::discard_body() {
  discard_ = true;
  drop_body();
}

void HttpParser::drop_body() {
  std::string().swap(request_.body);
  if (bodies_ != nullptr) bodies_->hold_body(0);
}

int HttpParser::fail(int status, std::string message) {
  phase_ = Phase::kFailed;
  error_status_ = status;
  error_message_ = std::move(message);
  drop_body();
  return HPE_USER;
}

HttpParser::Event HttpParser::fail_syntax(int code, const char* reason) {
  if (phase_ == Phase::kFailed) return Event::kError;  // One of our own callbacks said why.
  if (code == HPE_INVALID_VERSION || code == HPE_PAUSED_H2_UPGRADE) {
    fail(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  } else {
    fail(400, std::string("malformed HTTP request: ") + (reason == nullptr ? "" : reason));
  }
  return Event::kError;
}

// The last byte before `at` that is no blank, fed now or before.
char HttpParser::solid_before(const char* at) const {
  while (at > fed_begin_ && is_blank(at[-1])) --at;
  return at > fed_begin_ ? at[-1] : last_solid_;
}

// A value comes in pieces: one per feed() that holds some of it, and one per folded line. llhttp
// takes a line break before its first byte for white space; others would see an empty value, and
// a line that is none (RFC 9112 5.2).
int HttpParser::on_header_value(const char* at, size_t length) {
  const char before = at > fed_begin_ ? at[-1] : last_byte_;
  std::string_view piece(at, length);
  if (!value_begun_ && length > 0 && solid_before(at) == '\n')
    return fail(
        400, "the header " + name_.substr(0, kNameShownMax) + " is folded before its value begins");
  if (value_begun_ && before == '\n') {
    value_folded_ = after_fold_ = true;
    while (!value_.empty() && is_blank(value_.back())) value_.pop_back();
    if (!value_.empty()) value_ += ' ';
  }
  value_begun_ = true;
  if (after_fold_) {
    while (!piece.empty() && is_blank(piece.front())) piece.remove_prefix(1);
    after_fold_ = piece.empty();
  }
  value_ += piece;
  return 0;
}

int HttpParser::on_header_end() {
  if (request_.headers.size() >= kHeadersMax)
    return fail(
        431, "the request has more than the limit of " + std::to_string(kHeadersMax) + " headers");
  if (name_.empty()) return fail(400, "a header has no name");
  while (!value_.empty() && is_blank(value_.back())) value_.pop_back();
  std::ranges::transform(name_, name_.begin(), ascii_lower);
  if (value_folded_ &&
      (name_ == "host" || name_ == "content-length" || name_ == "transfer-encoding"))
    return fail(400, std::string("the header ") + name_ + " is folded over two lines");
  header_heap_bytes_ += heap_bytes(name_) + heap_bytes(value_);
  request_.headers.emplace_back(std::move(name_), std::move(value_));
  name_.clear();
  value_.clear();
  value_begun_ = value_folded_ = after_fold_ = false;
  return 0;
}

int HttpParser::on_head_end() {
  llhttp_t& parser = impl_->parser;
  if (parser.http_major != 1 || parser.http_minor > 1)
    return fail(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  if (parser.method == HTTP_CONNECT) return fail(501, "this server is no proxy: CONNECT");
  request_.method = llhttp_method_name(static_cast<llhttp_method_t>(parser.method));
  // An offer to change the protocol (`Upgrade: h2c`) is passed over, as RFC 9110 7.8 allows.
  parser.upgrade = 0;
  http_1_0_ = parser.http_minor == 0;
  keep_alive_ = llhttp_should_keep_alive(&parser) != 0;
  if (request_.path.empty()) return fail(400, "the request target must begin with '/'");
  chunked_ = (parser.flags & F_CHUNKED) != 0;
  content_length_ = (parser.flags & F_CONTENT_LENGTH) != 0 ? parser.content_length : 0;
  if (const int error = check_framing(); error != 0) return error;
  phase_ = Phase::kBody;
  event_ = Event::kHeaders;
  return HPE_PAUSED;
}

// What makes two readers see different borders between requests is refused, here and by llhttp.
int HttpParser::check_framing() {
  int hosts = 0, codings = 0, lengths = 0;
  expects_continue_ = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "host") {
      ++hosts;
    } else if (name == "content-length") {
      ++lengths;
    } else if (name == "transfer-encoding") {
      ++codings;
      if (!equals_ignoring_case(value, "chunked"))
        return fail(
            501, std::string("the transfer coding must be \"chunked\", found \"") + value + "\"");
    } else if (name == "expect" && !http_1_0_) {
      if (!equals_ignoring_case(value, "100-continue"))
        return fail(
            417, std::string("the expectation must be \"100-continue\", found \"") + value + "\"");
      expects_continue_ = true;
    }
  }
  if (hosts > 1) return fail(400, "the request has more than one Host header");
  if (hosts == 0 && !http_1_0_) return fail(400, "the request has no Host header");
  if (codings > 1 || lengths > 1 || (codings > 0 && lengths > 0))
    return fail(400, "the length of the body is given more than once");
  if (codings > 0 && (http_1_0_ || !chunked_))
    return fail(400, "the transfer coding does not fit the request");
  if (content_length_ > body_bytes_max_)
    return fail(413, std::string("the body of ") + std::to_string(content_length_) +
                         " bytes is larger than the limit of " + std::to_string(body_bytes_max_) +
                         " bytes");
  return 0;
}

// Origin form, absolute form (which proxies send) without its authority, or `*`; no path if it is
// none of them. As soon as it is there: also an error in the headers is one of this path.
int HttpParser::on_target_end() {
  std::string_view target = target_;
  if (!target.starts_with('/') && target != "*") {
    const size_t authority = target.find("://");
    if (authority == std::string_view::npos) return 0;
    const size_t path = target.find_first_of("/?", authority + 3);
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  request_.path = target.substr(0, question);
  if (request_.path.empty()) request_.path.push_back('/');
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  std::string().swap(target_);  // Its memory would stay for as long as the connection does.
  return 0;
}

int HttpParser::on_body(const char* at, size_t length) {
  body_bytes_ += length;
  if (body_bytes_ > body_bytes_max_)
    return fail(
        413, "the body is larger than the limit of " + std::to_string(body_bytes_max_) + " bytes");
  if (discard_) return 0;
  const size_t size = request_.body.size() + length;
  if (size > request_.body.capacity() && !grow_body(size))
    return fail(503, "the server is receiving as many bytes of bodies as it may hold");
  request_.body.append(at, length);
  return 0;
}

// Doubles the body's memory. The announced length is trusted only as far as bytes have come (a
// client that announces much and sends little costs little), but never exceeded.
bool HttpParser::grow_body(size_t size) {
  const size_t end = chunked_ ? body_bytes_max_ : static_cast<size_t>(content_length_);
  const size_t capacity = std::max(size, std::min(2 * request_.body.capacity(), end));
  if (bodies_ != nullptr && !bodies_->hold_body(capacity)) return false;
  std::string grown;  // A string that grows by itself doubles whatever it is asked for.
  grown.reserve(capacity);
  grown.append(request_.body);
  request_.body.swap(grown);
  return true;
}

}  // namespace weir::net
