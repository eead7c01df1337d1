#include "api/ollama/pull_answer.h"

#include <utility>

#include "api/ollama/error.h"
#include "base/json.h"

namespace weir::api::ollama {

namespace {

// Of a digest, in a line for people.
constexpr size_t kShownDigits = 12;

std::string status_line(std::string_view status) {
  std::string line;
  JsonWriter(line).begin_object().field("status", status).end_object();
  return line;
}

std::string progress_line(const PullProgress& progress) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().field("status", "pulling " + progress.digest.substr(0, kShownDigits));
  json.field("digest", "sha256:" + progress.digest).field("total", progress.bytes);
  json.field("completed", progress.bytes_done).end_object();
  return line;
}

}  // namespace

void PullAnswer::begin(ModelStore& store, const std::string& model) {
  model_ = model;
  exchange_->responder().on_closed([weak = weak_from_this()] {
    if (const auto answer = weak.lock()) answer->abandon();
  });
  auto stop = store.pull(
      model,
      [weak = weak_from_this()](const PullProgress& now) {
        if (const auto answer = weak.lock()) answer->progress(now);
      },
      [weak = weak_from_this()](const Result<void>& result) {
        if (const auto answer = weak.lock()) answer->end(result);
      });
  if (ended_) return;  // It was refused at once.
  stop_ = std::move(stop);
  if (done_) return this->stop();  // The client has left meanwhile.
  start();
}

// Not before it is known that the pull is not refused, which is an error with a status of its own.
void PullAnswer::start() {
  if (!stream_ || std::exchange(started_, true)) return;
  exchange_->start_stream("application/x-ndjson");
  write(status_line("pulling manifest"));
}

void PullAnswer::write(std::string line) {
  net::HttpResponder& responder = exchange_->responder();
  responder.write(line + "\n");
  last_line_ = std::move(line);
  last_write_ = sched::Clock::now();
  if (responder.closed()) abandon();
}

void PullAnswer::progress(const PullProgress& progress) {
  latest_ = progress;
  if (done_ || !stream_) return;
  start();
  if (!done_ && exchange_->responder().queued_bytes() <= kQueuedBytesMax)
    write(progress_line(progress));
}

// Every byte was verified as it came; what is said of it is what Ollama says.
void PullAnswer::end(const Result<void>& result) {
  ended_ = true;
  if (done_) return;
  stop_ = {};
  if (!result) return fail(result.error());
  if (!stream_) {
    done_ = true;
    return exchange_->respond_json(status_line("success"));
  }
  start();
  for (const char* status : {"verifying sha256 digest", "writing manifest", "success"}) {
    if (done_) return;  // The client is gone.
    write(status_line(status));
  }
  if (std::exchange(done_, true)) return;
  exchange_->end_stream();
}

void PullAnswer::fail(const Error& error) {
  if (std::exchange(done_, true)) return;
  stop();
  if (!started_) return exchange_->respond_error(error);
  exchange_->responder().write(error_json(error) + "\n");
  exchange_->end_stream();
}

void PullAnswer::keep_alive(sched::Clock::time_point now, std::chrono::milliseconds silence) {
  if (done_ || !started_ || now - last_write_ < silence) return;
  if (exchange_->responder().queued_bytes() == 0) write(last_line_);
}

void PullAnswer::abandon() {
  if (std::exchange(done_, true)) return;
  stop();
  exchange_->abandon();
}

void PullAnswer::stop() {
  if (const auto stop = std::exchange(stop_, {})) stop();
}

}  // namespace weir::api::ollama
