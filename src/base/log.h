// Logging: one line per event, `subsystem what key=value`, or the same as a JSON object a line.
// A few functions that hide spdlog.
//
// No function here waits for the file: a thread of its own writes the lines (log_writer.h), within
// a millisecond or so, and where the file takes none they are dropped.
//
// Threads: any but the engine's and the team's, which must neither allocate nor block; they leave
// figures in metrics, and others log them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace weir::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// kJson: {"time", "level", "message"}, or {"time", "level", "event", fields...}.
enum class Format { kText, kJson };

// Called once, before the first line. Lines go to standard error.
void configure(Level level, Format format = Format::kText);
// Lines go to the end of this file instead, which is made if it is not there.
Result<void> to_file(const std::string& path);
// Opens the file again by its name: for programs that have moved it away. On error the lines go on
// where they went. Nothing to do for standard error.
Result<void> reopen();
// Waits until what was logged is written, for `most` at the longest: before the process ends, or
// before something that a reader should see after it. False if some of it is not written then. The
// end of the process waits by itself for a second at most (exit(), the end of main).
bool flush(std::chrono::milliseconds most);
// Lines that were lost, since the process began.
uint64_t lines_dropped();
bool enabled(Level level);

void debug(std::string_view line);
void info(std::string_view line);
void warn(std::string_view line);
void error(std::string_view line);

struct Field {
  std::string_view key;
  std::variant<std::string_view, int64_t, double> value;
};

// An event of which machines read the parts. Numbers with a fraction are written with one decimal.
void event(Level level, std::string_view name, std::span<const Field> fields);
// The line without its time and level; for tests.
std::string format_event(Format format, std::string_view name, std::span<const Field> fields);

}  // namespace weir::log
