// The whole pipeline is traced: network loop, engine, team. The client costs next to nothing: it
// sends its requests, and looks only now and then whether the answers have ended.
#include "commands/bench_trace.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/trace.h"
#include "commands/trace_summary.h"
#include "server.h"

namespace weir {

namespace {

// How often the client looks at its answers: the events of so long fit any socket's buffer.
constexpr auto kLookPeriod = std::chrono::milliseconds(20);
// The first step of an answer and those after it, until all streams have begun.
constexpr int32_t kPromptTokens = 8;

// One streamed answer, on a connection of its own.
class Answer {
 public:
  Answer() = default;
  Answer(Answer&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), status_(std::move(other.status_)) {}
  Answer& operator=(Answer&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~Answer() {
    if (socket_ >= 0) ::close(socket_);
  }

  Result<void> request(uint16_t port, const std::string& body) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_ < 0 ||
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return failed("connect");
    const std::string text =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != std::ssize(text))
      return failed("send");
    return {};
  }

  // Takes what has arrived; true when that was the last of it.
  Result<bool> look() {
    char bytes[16384];
    while (true) {
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (count < 0) return failed("receive");
      if (count == 0) break;
      if (status_.size() < kStatusLine)
        status_.append(bytes, std::min(static_cast<size_t>(count), kStatusLine - status_.size()));
    }
    if (status_.starts_with("HTTP/1.1 200")) return true;
    return fail(ErrorCode::kIo,
                "trace: expected an answer with status 200; found '" + status_ + "'");
  }

 private:
  static constexpr size_t kStatusLine = 12;

  static tl::unexpected<Error> failed(const char* what) {
    return fail(ErrorCode::kIo,
                std::string("trace: the client could not ") + what + ": " + std::strerror(errno));
  }

  int socket_ = -1;
  std::string status_;
};

// A greedy stream whose prompt, of token ids, no other stream has.
std::string body_of(int32_t stream, int32_t tokens) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("prompt").begin_array();
  for (int32_t i = 0; i < kPromptTokens; ++i) json.value(i == 0 ? stream : i);
  json.end_array().field("max_tokens", tokens).field("temperature", 0).field("stream", true);
  json.field("ignore_eos", true).end_object();
  return body;
}

Result<void> stream_together(uint16_t port, int32_t streams, int32_t tokens) {
  std::vector<Answer> answers(static_cast<size_t>(streams));
  for (int32_t i = 0; i < streams; ++i)
    WEIR_TRY(answers[static_cast<size_t>(i)].request(port, body_of(i, tokens)));
  while (!answers.empty()) {
    std::this_thread::sleep_for(kLookPeriod);
    for (size_t i = answers.size(); i-- > 0;) {
      WEIR_ASSIGN(const bool ended, answers[i].look());
      if (ended) answers.erase(answers.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return {};
}

void print(const std::vector<TraceSummary>& summaries, bool as_json) {
  std::string out;
  JsonWriter json(out);
  if (as_json) json.begin_array();
  for (const TraceSummary& summary : summaries)
    as_json ? summary.write(json) : static_cast<void>(out += summary.table());
  if (as_json) json.end_array();
  std::printf("%s\n", out.c_str());
}

}  // namespace

Result<void> trace_serving(const Options& options, const std::vector<int32_t>& batches) {
  Options server = options;
  server.speculative = Speculative::kOff;  // A step gives a token: what is looked at is the step.
  server.command = Command::kServe;
  server.host = "127.0.0.1";
  server.port = 0;
  server.log_level = log::Level::kWarn;
  server.parallel = *std::ranges::max_element(batches);

  trace::Recorder recorder;
  Result<void> streamed;
  std::thread client;
  const Result<void> served = serve(
      server, {.recorder = &recorder, .on_ready = [&](uint16_t port, std::function<void()> stop) {
                 client = std::thread([&, port, stop = std::move(stop)] {
                   for (const int32_t batch : batches)
                     if (streamed) streamed = stream_together(port, batch, options.bench_decode);
                   stop();
                 });
               }});
  if (client.joinable()) client.join();
  WEIR_TRY(served);
  WEIR_TRY(streamed);
  WEIR_TRY(recorder.write(options.trace));
  std::vector<TraceSummary> summaries;
  for (const int32_t batch : batches) {
    WEIR_ASSIGN(TraceSummary summary, TraceSummary::of(recorder, batch));
    summaries.push_back(std::move(summary));
  }
  print(summaries, options.json);
  return {};
}

}  // namespace weir
