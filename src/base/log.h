// Logging: one line per event, `subsystem what key=value`, or the same as a JSON object a line.
// spdlog behind a few functions.
//
// Threads: any but the engine's and the team's, which must neither allocate nor block; they leave
// figures in metrics, and others log them.
#pragma once

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
