// LoadClient: a request's bytes, and the reading of its answer.
#include "load/load_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json.h"

namespace weir::load {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

// Of an answer that is not a stream, and of an error's body.
constexpr size_t kBodyBytesMax = 64 << 20;

int64_t integer_or_zero(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  int64_t number = 0;
  if (value && value->get(number) != simdjson::SUCCESS) return 0;
  return number;
}

std::optional<JsonObject> object_member(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  JsonObject member;
  if (!value || value->get(member) != simdjson::SUCCESS) return std::nullopt;
  return member;
}

bool has_text(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  std::string_view text;
  return value && value->get(text) == simdjson::SUCCESS && !text.empty();
}

}  // namespace

// What weir-load wants to know of an answer or of an event of one.
struct Reply {
  bool has_text = false;
  bool has_finish = false;
  bool has_usage = false;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::string error;
};

namespace {

// Text of a choice: chat streams have it in `delta`, whole chat answers in `message`, completions
// in `text`.
void read_choice(JsonObject choice, Reply& reply) {
  reply.has_finish |= json_get(choice, "finish_reason").has_value();
  reply.has_text |= has_text(choice, "text");
  for (const char* part : {"delta", "message"}) {
    const std::optional<JsonObject> object = object_member(choice, part);
    if (!object) continue;
    reply.has_text |= has_text(*object, "content") || has_text(*object, "reasoning_content") ||
                      json_get(*object, "tool_calls").has_value();
  }
}

Reply read_reply(std::string_view text) {
  Reply reply;
  const Result<JsonDoc> doc = JsonDoc::parse(text);
  JsonObject root;
  if (!doc || doc->root().get(root) != simdjson::SUCCESS) {
    reply.error = "not a JSON object: " + std::string(text.substr(0, 60));
    return reply;
  }
  if (const std::optional<JsonObject> error = object_member(root, "error")) {
    std::string_view message;
    const std::optional<JsonValue> value = json_get(*error, "message");
    if (value && value->get(message) != simdjson::SUCCESS) message = "not a string";
    reply.error = "error event: " + std::string(message.substr(0, 100));
    return reply;
  }
  JsonArray choices;
  const std::optional<JsonValue> list = json_get(root, "choices");
  if (!list || list->get(choices) != simdjson::SUCCESS) {
    reply.error = "no choices: " + std::string(text.substr(0, 60));
    return reply;
  }
  for (const JsonValue value : choices) {
    JsonObject choice;
    if (value.get(choice) == simdjson::SUCCESS) read_choice(choice, reply);
  }
  if (const std::optional<JsonObject> usage = object_member(root, "usage")) {
    reply.has_usage = true;
    reply.prompt_tokens = integer_or_zero(*usage, "prompt_tokens");
    if (const auto details = object_member(*usage, "prompt_tokens_details"))
      reply.cached_tokens = integer_or_zero(*details, "cached_tokens");
    reply.output_tokens = integer_or_zero(*usage, "completion_tokens");
  }
  return reply;
}

}  // namespace

LoadClient::LoadClient(net::Loop& loop, const net::HttpTarget& target, const LoadOptions& options,
                       std::span<GapHistogram> gaps, Done done)
    : options_(options),
      gaps_(gaps),
      done_(std::move(done)),
      http_(loop, target,
            {.on_head = [this](int status, std::string_view type) { on_head(status, type); },
             .on_body = [this](std::string_view bytes) { on_body(bytes); },
             .on_end = [this] { on_end(); },
             .on_error = [this](const std::string& message) { fail(message); }}) {
  head_ = std::string("POST /v1/") + (options.chat ? "chat/completions" : "completions") +
          " HTTP/1.1\r\nHost: " + options.authority() + "\r\nContent-Type: application/json\r\n";
  if (!options.api_key.empty()) head_ += "Authorization: Bearer " + options.api_key + "\r\n";
}

void LoadClient::start(Job job, int64_t due_ns, bool measured) {
  is_busy_ = true;
  measured_ = measured;
  job_ = std::move(job);
  outcome_ = Outcome{};
  outcome_.due_ns = due_ns;
  outcome_.class_index = job_.class_index;
  sse_.reset();
  body_.clear();
  is_stream_ = saw_finish_ = saw_done_ = false;
  const std::string session = job_.session.empty() ? "" : "x-session-id: " + job_.session + "\r\n";
  http_.request(head_ + session + "Content-Length: " + std::to_string(job_.body.size()) +
                "\r\n\r\n" + job_.body);
}

void LoadClient::open_idle() { http_.connect(); }

void LoadClient::check_timeout(int64_t now) {
  if (is_busy_ && static_cast<double>(now - outcome_.due_ns) > options_.timeout_s * 1e9)
    cancel("no answer within the time limit");
}

void LoadClient::cancel(const std::string& why) {
  http_.close();
  if (is_busy_) fail(why);
}

void LoadClient::on_head(int status, std::string_view content_type) {
  outcome_.status = status;
  is_stream_ = status == 200 && options_.stream;
  if (!is_stream_) return;
  if (!content_type.starts_with("text/event-stream"))
    outcome_.error = "the content type of a stream is " + std::string(content_type);
  sse_.emplace([this](std::string_view, std::string_view data) { on_event(data); });
}

void LoadClient::on_body(std::string_view bytes) {
  if (is_stream_) {
    if (!sse_->feed(bytes) && outcome_.error.empty()) outcome_.error = sse_->error();
    if (job_.abort_after > 0 && outcome_.pieces >= job_.abort_after && outcome_.error.empty()) {
      http_.close();
      finish(Outcome::Kind::kAborted);
    }
  } else if (body_.size() + bytes.size() <= kBodyBytesMax) {
    body_ += bytes;
  }
}

void LoadClient::on_event(std::string_view data) {
  if (!outcome_.error.empty()) return;
  if (saw_done_) {
    outcome_.error = "an event after [DONE]";
  } else if (data == "[DONE]") {
    saw_done_ = true;
  } else {
    Reply reply = read_reply(data);
    if (reply.has_text) on_text();
    saw_finish_ |= reply.has_finish;
    outcome_.error = std::move(reply.error);
    if (!reply.has_usage) return;
    outcome_.has_usage = true;
    outcome_.prompt_tokens = reply.prompt_tokens;
    outcome_.cached_tokens = reply.cached_tokens;
    outcome_.output_tokens = reply.output_tokens;
  }
}

void LoadClient::on_text() {
  const int64_t now = now_ns();
  if (outcome_.pieces++ == 0) {
    outcome_.first_ns = now;
  } else if (measured_) {
    const int64_t gap = now - outcome_.last_ns;
    gaps_[static_cast<size_t>(outcome_.class_index)].add(gap);
    outcome_.gap_max_ns = std::max(outcome_.gap_max_ns, gap);
  }
  outcome_.last_ns = now;
}

void LoadClient::on_end() {
  if (!is_busy_) return;  // An idle connection was opened.
  if (outcome_.status != 200) {
    const bool refused = outcome_.status == 429 || outcome_.status == 503;
    outcome_.error = body_.substr(0, 200);
    return finish(refused ? Outcome::Kind::kRefused : Outcome::Kind::kFailed);
  }
  if (is_stream_) {
    if (!sse_->finish() && outcome_.error.empty()) outcome_.error = sse_->error();
    if (!saw_finish_ && outcome_.error.empty()) outcome_.error = "no finish_reason";
    if (!saw_done_ && outcome_.error.empty()) outcome_.error = "no [DONE]";
    if (!outcome_.has_usage) outcome_.output_tokens = outcome_.pieces;
  } else {
    read_whole();
  }
  finish(outcome_.error.empty() ? Outcome::Kind::kOk : Outcome::Kind::kFailed);
}

void LoadClient::read_whole() {
  Reply reply = read_reply(body_);
  outcome_.error = std::move(reply.error);
  outcome_.has_usage = reply.has_usage;
  outcome_.prompt_tokens = reply.prompt_tokens;
  outcome_.cached_tokens = reply.cached_tokens;
  outcome_.output_tokens = reply.output_tokens;
  outcome_.pieces = 1;
  outcome_.first_ns = outcome_.last_ns = now_ns();
}

void LoadClient::fail(std::string error) {
  outcome_.error = std::move(error);
  if (is_busy_) finish(Outcome::Kind::kFailed);
}

void LoadClient::finish(Outcome::Kind kind) {
  is_busy_ = false;
  outcome_.kind = kind;
  outcome_.end_ns = now_ns();
  done_(*this, std::exchange(outcome_, {}));
}

}  // namespace weir::load
