// LoadClient: one connection that sends jobs, one at a time, and measures each answer.
//
// Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "load/histogram.h"
#include "load/load_options.h"
#include "load/work.h"
#include "net/http_client.h"
#include "net/sse_parser.h"

namespace weir::load {

// Nanoseconds of the monotonic clock.
int64_t now_ns();

// What became of one request.
struct Outcome {
  enum class Kind : uint8_t { kOk, kRefused, kFailed, kAborted };
  Kind kind = Kind::kFailed;
  int32_t class_index = 0;
  int status = 0;  // 0: no answer.
  std::string error;
  int64_t due_ns = 0;  // When it was sent; in an open loop, when it was to be sent.
  int64_t first_ns = 0, last_ns = 0, end_ns = 0;  // First and last text, end of the answer.
  int64_t gap_max_ns = 0;
  int64_t pieces = 0;  // Events with text.
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  bool has_usage = false;
};

class LoadClient {
 public:
  using Done = std::function<void(LoadClient&, const Outcome&)>;

  // `gaps` takes, by class, every gap between two pieces of text of measured requests.
  LoadClient(net::Loop& loop, const net::HttpTarget& target, const LoadOptions& options,
             std::span<GapHistogram> gaps, Done done);

  // REQUIRES: no job is under way.
  void start(Job job, int64_t due_ns, bool measured);
  void open_idle();
  // Fails the job under way if it is older than the limit.
  void check_timeout(int64_t now);
  // Breaks off; `done` is called if a job was under way.
  void cancel(const std::string& why);

  bool is_busy() const { return is_busy_; }
  bool is_measured() const { return measured_; }
  bool is_open() const { return http_.is_open(); }
  uint64_t connections() const { return http_.connections(); }

  int64_t begun = 0;  // The runner's: jobs begun in this phase.

 private:
  void on_head(int status, std::string_view content_type);
  void on_body(std::string_view bytes);
  void on_event(std::string_view data);
  void on_end();
  void read_whole();
  void on_text();
  void fail(std::string error);
  void finish(Outcome::Kind kind);

  const LoadOptions& options_;
  const std::span<GapHistogram> gaps_;
  const Done done_;
  net::HttpClient http_;
  std::string head_;  // Of every request.

  bool is_busy_ = false;
  bool measured_ = false;
  Job job_;
  Outcome outcome_;
  std::optional<net::SseParser> sse_;
  std::string body_;  // Of an answer that is no stream.
  bool is_stream_ = false;
  bool saw_finish_ = false;
  bool saw_done_ = false;
};

}  // namespace weir::load
