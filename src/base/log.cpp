#include "base/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "base/log_writer.h"

namespace weir::log {

namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v";
// A JSON line is this around what a message brings: time and level come first.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

Format chosen_format = Format::kText;  // Written once, before the first line.

const char* pattern() { return chosen_format == Format::kJson ? kJsonPattern : kTextPattern; }

// What a terminal shows of a level.
std::string_view colour_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "\033[36m";
    case spdlog::level::info:
      return "\033[32m";
    case spdlog::level::warn:
      return "\033[33m\033[1m";
    default:
      return "\033[31m\033[1m";
  }
}

std::string drop_notice(uint64_t lines) {
  const Field fields[] = {{"lines", static_cast<int64_t>(lines)}};
  const std::string text = format_event(chosen_format, "log dropped", fields);
  spdlog::memory_buf_t line;
  spdlog::pattern_formatter(pattern()).format({"weir", spdlog::level::warn, text}, line);
  return std::string(line.data(), line.size());
}

// Never destroyed: others log for as long as there is a process.
LogWriter& writer() {
  static LogWriter* const instance = [] {
    // A second: of a pipe that is read slowly all comes through.
    std::atexit([] { flush(std::chrono::seconds(1)); });
    return new LogWriter(STDERR_FILENO, &drop_notice);
  }();
  return *instance;
}

class WriterSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit WriterSink(bool with_colours) : with_colours_(with_colours) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    const size_t begin = message.color_range_start, end = message.color_range_end;
    if (!with_colours_ || end <= begin) return writer().push(text);
    std::string coloured(text.substr(0, begin));
    coloured.append(colour_of(message.level)).append(text.substr(begin, end - begin));
    coloured.append("\033[m").append(text.substr(end));
    writer().push(coloured);
  }
  void flush_() override {}

  const bool with_colours_;
};

std::string file_path;  // Written once, before there are other threads.

Result<void> open_file(const std::string& path) {
  // O_NONBLOCK: a FIFO that no process reads is an error, not a halt.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd < 0)
    return fail(ErrorCode::kIo, "cannot open the log file " + path + ": " + std::strerror(errno));
  writer().write_to(fd);
  return {};
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    const bool with_colours =
        spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
    auto created =
        std::make_shared<spdlog::logger>("weir", std::make_shared<WriterSink>(with_colours));
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
  logger().set_pattern(pattern());
}

Result<void> to_file(const std::string& path) {
  WEIR_TRY(open_file(path));
  file_path = path;
  logger().sinks().assign(1, std::make_shared<WriterSink>(false));
  logger().set_pattern(pattern());
  return {};
}

Result<void> reopen() { return file_path.empty() ? Result<void>() : open_file(file_path); }

bool flush(std::chrono::milliseconds most) { return writer().flush(most); }
uint64_t lines_dropped() { return writer().dropped(); }

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
