#include "api/ollama/time_text.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace weir::api::ollama {

namespace {

std::string seconds_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts)};
}

}  // namespace

std::string time_text(int64_t seconds) { return seconds_text(seconds) + "Z"; }

std::string now_text() {
  using std::chrono::microseconds;
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
  std::array<char, 16> decimals{};
  std::snprintf(decimals.data(), decimals.size(), ".%06dZ",
                static_cast<int>(now.count() % 1'000'000));
  return seconds_text(now.count() / 1'000'000) + decimals.data();
}

}  // namespace weir::api::ollama
