// Times as Ollama's clients read them: RFC 3339 in UTC, with at most six decimals, which is what
// Python's datetime takes.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace weir::api::ollama {

std::string time_text(int64_t seconds);  // Since the epoch.
std::string now_text();

}  // namespace weir::api::ollama
