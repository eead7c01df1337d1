#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"

namespace weir::log {

namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v";
// A JSON line is this around what a message brings: time and level come first.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

Format chosen_format = Format::kText;  // Written once, before the first line.

// Each line is one write to the end of the file: nothing is lost when the process is killed, and
// lines of several writers do not mix. What a full disk does not take is lost.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(std::string path) : path_(std::move(path)) {}
  ~FileSink() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Result<void> open() {
    // O_NONBLOCK: a FIFO that nobody reads is an error, not a halt.
    const int fd =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd < 0)
      return fail(ErrorCode::kIo,
                  "cannot open the log file " + path_ + ": " + std::strerror(errno));
    const std::lock_guard lock(mutex_);
    const int before = std::exchange(fd_, fd);
    if (before >= 0) ::close(before);
    return {};
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
  }
  void flush_() override {}

  const std::string path_;
  int fd_ = -1;  // Guarded by mutex_.
};

std::shared_ptr<FileSink> file_sink;  // Written once, before there are other threads.

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = spdlog::stderr_color_mt("weir");
    created->set_pattern(kTextPattern);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void write(Level level, std::string_view line) {
  if (chosen_format == Format::kText) return logger().log(to_spdlog(level), "{}", line);
  if (!enabled(level)) return;
  std::string json = "\"message\":";
  append_json_string(json, line);
  logger().log(to_spdlog(level), "{}", json);
}

std::string decimal(double number) {
  char buffer[64];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed, 1);
  return error == std::errc() ? std::string(buffer, end) : "0";
}

}  // namespace

void configure(Level level, Format format) {
  chosen_format = format;
  logger().set_level(to_spdlog(level));
  logger().set_pattern(format == Format::kJson ? kJsonPattern : kTextPattern);
}

Result<void> to_file(const std::string& path) {
  auto sink = std::make_shared<FileSink>(path);
  WEIR_TRY(sink->open());
  file_sink = sink;
  logger().sinks().assign(1, std::move(sink));
  logger().set_pattern(chosen_format == Format::kJson ? kJsonPattern : kTextPattern);
  return {};
}

Result<void> reopen() { return file_sink ? file_sink->open() : Result<void>(); }

bool enabled(Level level) { return logger().should_log(to_spdlog(level)); }
void debug(std::string_view line) { write(Level::kDebug, line); }
void info(std::string_view line) { write(Level::kInfo, line); }
void warn(std::string_view line) { write(Level::kWarn, line); }
void error(std::string_view line) { write(Level::kError, line); }

std::string format_event(Format format, std::string_view name, std::span<const Field> fields) {
  const bool json = format == Format::kJson;
  std::string out;
  if (json) out += "\"event\":";
  json ? append_json_string(out, name) : void(out += name);
  for (const auto& [key, value] : fields) {
    out += json ? ',' : ' ';
    json ? append_json_string(out, key) : void(out += key);
    out += json ? ':' : '=';
    if (const auto* text = std::get_if<std::string_view>(&value))
      json ? append_json_string(out, *text) : void(out += *text);
    else if (const auto* integer = std::get_if<int64_t>(&value))
      out += std::to_string(*integer);
    else
      out += decimal(std::get<double>(value));
  }
  return out;
}

void event(Level level, std::string_view name, std::span<const Field> fields) {
  if (!enabled(level)) return;
  logger().log(to_spdlog(level), "{}", format_event(chosen_format, name, fields));
}

}  // namespace weir::log
