// ProgressBar: how far work on many bytes is: a bar on a terminal, a line for each tenth elsewhere.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace weir {

class ProgressBar {
 public:
  ProgressBar();

  // `here` of the `done` bytes were there before the work began: they say nothing of its speed.
  // `note` stands after the figures.
  void show(int64_t done, int64_t total, int64_t here = 0, std::string_view note = {});
  // Ends the bar's line where it stands, so that something else may be printed.
  void end_line();

 private:
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point printed_{};
  int64_t tenth_ = 0;
  bool open_ = false;  // A bar stands on the line.
};

}  // namespace weir
