// Logging: one line per event, `subsystem what key=value`. spdlog behind a few functions.
//
// Threads: any but the engine's and the team's, which must neither allocate nor block; they leave
// figures in metrics, and others log them.
#pragma once

#include <string_view>

namespace weir::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// Called once, before the first line. Lines go to standard error.
void configure(Level level);
bool enabled(Level level);

void debug(std::string_view line);
void info(std::string_view line);
void warn(std::string_view line);
void error(std::string_view line);

}  // namespace weir::log
