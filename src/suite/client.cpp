#include "suite/client.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "net/loop.h"
#include "net/sse_parser.h"
#include "net/tls.h"
#include "program/options.h"

namespace weir::suite {

namespace {

using std::chrono::steady_clock;

constexpr size_t kBodyMax = size_t{64} << 20;
constexpr size_t kErrorMax = 300;
// Of one answer: a prompt of a hundred thousand tokens takes minutes on a small machine.
constexpr double kAnswerSecondsMax = 1800;
constexpr uint64_t kLookMs = 500;

// Asks requests one after another until there are no more.
class Asker {
 public:
  using Next = std::function<std::optional<size_t>()>;

  Asker(net::Loop& loop, const net::HttpTarget& target, std::string head,
        std::span<const Request> requests, std::span<Answer> answers, Next next)
      : head_(std::move(head)),
        requests_(requests),
        answers_(answers),
        next_(std::move(next)),
        http_(loop, target,
              {.on_head = [this](int status, std::string_view type) { on_head(status, type); },
               .on_body = [this](std::string_view bytes) { on_body(bytes); },
               .on_end = [this] { finish(); },
               .on_error = [this](const std::string& why) { fail(why); }}) {}

  void begin() {
    const std::optional<size_t> at = next_();
    answer_ = at ? &answers_[*at] : nullptr;
    if (answer_ == nullptr) return;
    sse_.reset();
    start_ = steady_clock::now();
    const Request& request = requests_[*at];
    std::string bytes = (request.body.empty() ? "GET " : "POST ") + request.path + head_;
    if (!request.body.empty())
      bytes += "Content-Type: application/json\r\nContent-Length: " +
               std::to_string(request.body.size()) + "\r\n";
    http_.request(bytes + "\r\n" + request.body);
  }

  void check_time() {
    if (answer_ == nullptr || seconds() < kAnswerSecondsMax) return;
    http_.close();
    fail("no answer within " + std::to_string(static_cast<int>(kAnswerSecondsMax)) + " s");
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(steady_clock::now() - start_).count();
  }

  void on_head(int status, std::string_view type) {
    answer_->status = status;
    if (status != 200 || !type.starts_with("text/event-stream")) return;
    sse_.emplace([this](std::string_view, std::string_view data) {
      if (data != "[DONE]") answer_->events.emplace_back(seconds(), data);
    });
  }

  void on_body(std::string_view bytes) {
    if (sse_) {
      if (!sse_->feed(bytes) && answer_->error.empty()) answer_->error = sse_->error();
    } else if (answer_->body.size() + bytes.size() <= kBodyMax) {
      answer_->body += bytes;
    }
  }

  void finish() {
    if (sse_ && !sse_->finish() && answer_->error.empty()) answer_->error = sse_->error();
    if (answer_->status != 200)
      answer_->error =
          "status " + std::to_string(answer_->status) + ": " + answer_->body.substr(0, kErrorMax);
    answer_->seconds = seconds();
    begin();
  }

  void fail(const std::string& why) {
    answer_->status = 0;
    answer_->error = why;
    answer_->seconds = seconds();
    begin();
  }

  const std::string head_;  // Of every request, after its path.
  const std::span<const Request> requests_;
  const std::span<Answer> answers_;
  const Next next_;
  net::HttpClient http_;
  Answer* answer_ = nullptr;  // Of the request under way.
  std::optional<net::SseParser> sse_;
  steady_clock::time_point start_;
};

std::string head_of(const load::LoadOptions& options) {
  std::string head = " HTTP/1.1\r\nHost: " + options.authority() + "\r\n";
  if (!options.api_key.empty()) head += "Authorization: Bearer " + options.api_key + "\r\n";
  return head;
}

}  // namespace

Result<Endpoint> Endpoint::at(const std::string& url, const std::string& api_keys) {
  load::LoadOptions options;
  if (const std::string wrong = options.set_url(url); !wrong.empty())
    return fail(ErrorCode::kConfig, "--url: " + wrong);
  if (const std::vector<std::string> keys = split_list(api_keys); !keys.empty())
    options.api_key = keys[0];
  WEIR_ASSIGN(net::HttpTarget target, net::HttpTarget::tcp(options.host, options.port));
  if (options.tls) {
    WEIR_ASSIGN(auto trust, net::TlsTrust::load("", /*anybody=*/false));
    target.use_tls(std::move(trust), options.host);
  }
  const std::string base = (options.tls ? "https://" : "http://") + options.authority();
  return Endpoint(base, std::move(options), std::move(target));
}

std::vector<Answer> Endpoint::ask(std::span<const Request> requests, int32_t at_once) const {
  std::vector<Answer> answers(requests.size());
  net::Loop loop;
  size_t given = 0, idle = 0;
  std::vector<std::unique_ptr<Asker>> askers;
  const size_t count = std::min(requests.size(), static_cast<size_t>(at_once));
  const auto next = [&]() -> std::optional<size_t> {
    if (given < requests.size()) return given++;
    if (++idle == count) loop.stop();
    return std::nullopt;
  };
  for (size_t i = 0; i < count; ++i)
    askers.push_back(
        std::make_unique<Asker>(loop, target_, head_of(options_), requests, answers, next));
  if (askers.empty()) return answers;
  loop.every(kLookMs, [&] {
    for (const auto& asker : askers) asker->check_time();
  });
  loop.post([&] {
    for (const auto& asker : askers) asker->begin();
  });
  loop.run();
  return answers;
}

Answer Endpoint::ask(const Request& request) const { return ask({&request, 1}, 1)[0]; }

Result<JsonDoc> Endpoint::ask_json(const Request& request) const {
  const Answer answer = ask(request);
  if (!answer.error.empty()) return fail(ErrorCode::kIo, request.path + ": " + answer.error);
  Result<JsonDoc> doc = JsonDoc::parse(answer.body);
  if (!doc) return fail(ErrorCode::kIo, request.path + ": " + doc.error().message);
  return doc;
}

double Endpoint::metric(std::string_view name) const {
  const Answer page = ask({.path = "/metrics", .body = {}});
  std::string line("\n");
  line.append(name).push_back(' ');
  const size_t at = page.body.find(line);
  return at == std::string::npos ? 0 : std::atof(page.body.c_str() + at + line.size());
}

}  // namespace weir::suite
