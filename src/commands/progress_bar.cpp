#include "commands/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/byte_size.h"
#include "base/concat.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

// "48.2 MB/s", "1.24 GB/s".
std::string rate_text(double bytes_per_second) {
  char text[32];
  if (bytes_per_second < 1e9)
    std::snprintf(text, sizeof text, "%.1f MB/s", bytes_per_second * 1e-6);
  else
    std::snprintf(text, sizeof text, "%.2f GB/s", bytes_per_second * 1e-9);
  return text;
}

// "40 s", "12 min", "3.5 h".
std::string time_text(double seconds) {
  char text[32];
  if (seconds < 120)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds < 2 * 3600)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  return text;
}

}  // namespace

ProgressBar::ProgressBar() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void ProgressBar::show(int64_t done, int64_t total, int64_t here, std::string_view note) {
  const auto now = steady_clock::now();
  const bool last = done >= total;
  const int64_t tenth = total == 0 ? 10 : 10 * done / total;
  if (!last && (terminal_ ? now - printed_ < std::chrono::milliseconds(100) : tenth == tenth_))
    return;
  if (last && !terminal_ && tenth == tenth_) return;
  printed_ = now;
  tenth_ = tenth;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(std::max<int64_t>(done - here, 0)) / seconds;
  std::string text = concat({human_bytes(done), " of ", human_bytes(total), ", ", rate_text(rate)});
  if (rate > 0)
    text.append(", ").append(time_text(static_cast<double>(total - done) / rate)).append(" left");
  if (!note.empty()) text.append("; ").append(note);
  if (!terminal_) {
    std::printf("%s\n", text.c_str());
  } else {
    constexpr int kWidth = 30;
    const auto full = static_cast<size_t>(total == 0 ? kWidth : kWidth * done / total);
    std::printf("\r[%s%s] %s \033[K", std::string(full, '#').c_str(),
                std::string(kWidth - full, ' ').c_str(), text.c_str());
    open_ = true;
    if (last) end_line();
  }
  std::fflush(stdout);
}

void ProgressBar::end_line() {
  if (open_) std::printf("\n");
  open_ = false;
}

}  // namespace weir
