#include "api/exchange/exchange.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>
#include <vector>

#include "api/exchange/api_error.h"
#include "api/exchange/error_shape.h"
#include "base/check.h"
#include "base/log.h"

namespace weir::api {

namespace {

constexpr size_t kRequestIdBytesMax = 128;
constexpr size_t kLoggedPathBytesMax = 128;

// A client's own id is repeated if it can stand in a header and a log line as it is.
bool is_sane_id(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  std::string_view("-_.:/+=").find(c) != std::string_view::npos;
         });
}

// Whole seconds, as the standard has it, and milliseconds, which OpenAI's SDKs look for first.
void append_retry_after(net::HttpResponder::Headers& headers, double seconds) {
  headers.emplace_back("Retry-After", std::to_string(static_cast<int64_t>(std::ceil(seconds))));
  headers.emplace_back("retry-after-ms",
                       std::to_string(static_cast<int64_t>(std::ceil(seconds * 1e3))));
}

// Probes come every second and say nothing.
bool is_probe(std::string_view path) {
  return path == "/health" || path == "/v1/health" || path == "/ready" || path == "/metrics";
}

}  // namespace

// Ids are secrets too: without keys a response is found by its id alone. So no id may tell anything
// of another; the system's generator is asked for many bytes at a time because a call costs more
// than the bytes.
uint64_t random_bits() {
  static std::array<uint64_t, 512> bits;
  static size_t next = bits.size();
  if (next == bits.size()) {
    for (size_t filled = 0; filled < sizeof bits;) {
      const ssize_t count =
          ::getrandom(reinterpret_cast<char*>(bits.data()) + filled, sizeof bits - filled, 0);
      CHECK(count > 0 || errno == EINTR);
      if (count > 0) filled += static_cast<size_t>(count);
    }
    next = 0;
  }
  return std::exchange(bits[next++], 0);
}

std::string random_id(std::string_view prefix) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string id;
  id.reserve(prefix.size() + 32);
  id += prefix;
  for (int word = 0; word < 2; ++word) {
    const uint64_t bits = random_bits();
    for (int shift = 60; shift >= 0; shift -= 4) id += kHex[bits >> shift & 15];
  }
  return id;
}

net::HttpResponder::Headers Exchange::common_headers(const Policy& policy,
                                                     const net::HttpRequest& request, int status) {
  net::HttpResponder::Headers headers;
  headers.reserve(4);  // One or two more are to come, mostly.
  const std::string_view id = request.header("x-request-id");
  headers.emplace_back("x-request-id", is_sane_id(id) ? std::string(id) : random_id("req_"));
  if (const std::string_view name = error_shape_of(request).id_header(); !name.empty())
    headers.emplace_back(name, headers.front().second);
  policy.cors.add_headers(request, headers);
  if (status == 429 || status == 503) append_retry_after(headers, policy.retry_after_s);
  return headers;
}

std::pair<std::string, std::string> Exchange::error_body(int status, std::string_view message,
                                                         const net::HttpRequest& request) {
  const Error error = error_of_status(status, std::string(message));
  return {"application/json", error_shape_of(request).json(error, {})};
}

Exchange::Exchange(const Policy& policy, ApiStats& stats, net::HttpRequest&& request,
                   net::HttpResponderPtr responder)
    : policy_(policy),
      stats_(stats),
      request_(std::move(request)),
      responder_(std::move(responder)),
      common_(common_headers(policy, request_, 0)),
      errors_(error_shape_of(request_)) {}

void Exchange::respond(int status, std::string_view content_type, std::string_view body,
                       net::HttpResponder::Headers headers) {
  settle();
  if (key_) key_->append_headers(common_, sched::Clock::now());
  for (auto& header : headers) common_.push_back(std::move(header));
  if (!content_type.empty()) common_.emplace_back("Content-Type", content_type);
  if (status == 429 && policy_.refusals != nullptr)
    policy_.refusals->respond(caller(), responder_, status, common_, body);
  else
    responder_->respond(status, common_, body);
  finish(status);
}

void Exchange::respond_error(const Error& error, net::HttpResponder::Headers headers) {
  if (is_temporary(error.code)) append_retry_after(headers, policy_.retry_after_s);
  answer_error(error, std::move(headers));
}

void Exchange::answer_error(const Error& error, net::HttpResponder::Headers headers) {
  if (streaming_) return end_with_event(errors_.event(error));
  const std::string body = errors_.json(error, common_.front().second);
  respond(errors_.http_status(error), "application/json", body, std::move(headers));
}

void Exchange::respond_refusal(const Key::Refusal& refusal) {
  net::HttpResponder::Headers headers;
  if (refusal.retry_after_s > 0) append_retry_after(headers, refusal.retry_after_s);
  answer_error(refusal.error, std::move(headers));
}

std::optional<Key::Refusal> Exchange::take_prompt_tokens(int64_t tokens) {
  if (!key_) return std::nullopt;
  auto refusal = key_->take_prompt(tokens, sched::Clock::now());
  if (!refusal) taken_tokens_ += tokens;
  return refusal;
}

void Exchange::set_ignored(const Ignored& ignored) {
  if (ignored.empty()) return;
  ignored_ = ignored.header();
  common_.emplace_back("x-weir-ignored", ignored_);
  stats_.ignored.add(static_cast<uint64_t>(ignored.count()));
}

// The answer has begun, so that its status stands.
void Exchange::end_with_event(const std::string& event) {
  settle();
  responder_->write(event);
  end_stream();
}

void Exchange::start_stream(std::string_view content_type) {
  if (std::exchange(streaming_, true)) return;
  if (key_) key_->append_headers(common_, sched::Clock::now());
  common_.emplace_back("Content-Type", content_type);
  common_.emplace_back("Cache-Control", "no-cache");
  common_.emplace_back("X-Accel-Buffering", "no");  // nginx would hold events back.
  responder_->start_stream(200, common_);
}

void Exchange::start_parts(std::string_view content_type) {
  settle();
  if (key_) key_->append_headers(common_, sched::Clock::now());
  common_.emplace_back("Content-Type", content_type);
  responder_->start_stream(200, common_);
}

void Exchange::end_stream() {
  responder_->end_stream();
  finish(200);
}

void Exchange::abandon() {
  if (finished_) return;
  stats_.disconnects.add();
  finish(http_status(ErrorCode::kCancelled));
}

void Exchange::finish(int status) {
  if (finished_) return;
  finished_ = true;
  Counter& counter = status < 400   ? stats_.answered_2xx
                     : status < 500 ? stats_.answered_4xx
                                    : stats_.answered_5xx;
  counter.add();
  log_answer(status);
  settle();
  use_ = {};
  held_.reset();
}

// A request that has not come to the engine has no figures, and pays nothing.
void Exchange::settle() {
  if (!key_ || std::exchange(settled_, true)) return;
  key_->settle(taken_tokens_, figures_.prompt_tokens + figures_.output_tokens + figures_.given_up_tokens,
                sched::Clock::now());
}

void Exchange::log_answer(int status) const {
  const bool probe = is_probe(request_.path) && status < 400;
  if (!log::enabled(probe ? log::Level::kDebug : log::Level::kInfo)) return;

  std::vector<log::Field> fields;
  fields.reserve(16);
  const auto number = [&](std::string_view key, int64_t value) { fields.push_back({key, value}); };
  const auto ms = [&](std::string_view key, double s) { fields.push_back({key, s * 1e3}); };
  const auto text = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) fields.push_back({key, value});
  };
  text("method", request_.method);
  text("path", std::string_view(request_.path).substr(0, kLoggedPathBytesMax));
  number("status", status);
  text("id", common_.front().second);
  if (key_) text("key", key_->name());
  if (figures_.prompt_tokens > 0) {
    number("prompt", figures_.prompt_tokens);
    number("cached", figures_.cached_tokens);
    number("output", figures_.output_tokens);
    text("finish", figures_.finish);
    ms("queue_ms", figures_.queue_s);
    ms("first_token_ms", figures_.first_token_s);
  }
  text("ignored", ignored_);
  const std::chrono::duration<double> total = sched::Clock::now() - came_;
  ms("total_ms", total.count());
  log::event(probe ? log::Level::kDebug : log::Level::kInfo, "http answer", fields);
}

}  // namespace weir::api
