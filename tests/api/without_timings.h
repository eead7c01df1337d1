// Answers without their timings, which differ from run to run.
#pragma once

#include <string>
#include <string_view>

namespace weir::api {

inline std::string without_timings(std::string text) {
  constexpr std::string_view kTimings = R"(,"timings":{)";
  for (size_t at = 0; (at = text.find(kTimings, at)) != std::string::npos;)
    text.erase(at, text.find('}', at) + 1 - at);
  return text;
}

}  // namespace weir::api
