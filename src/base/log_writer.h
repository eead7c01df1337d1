// LogWriter: lines on their way to a file descriptor. A thread of its own writes them, so that a
// pipe that no process reads, or a slow disk, stops no thread: a line that finds no room is
// dropped, counted, and told of by a line as soon as there is room again.
//
// Threads: any; the descriptor is written by the writer's own thread alone.
//
// Invariants:
// (1) Lines are written in the order of push(), each whole. What was pushed before write_to() goes
//     to the file before, what comes after it to the new one.
// (2) At most kPendingBytesMax wait to be written, and as many are being written.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weir::log {

class LogWriter {
 public:
  static constexpr size_t kPendingBytesMax = 512 << 10;

  // `notice` makes the line that tells of so many dropped ones. `fd` is not closed in the end, and
  // its flags stay as they are: standard error may be another program's too.
  LogWriter(int fd, std::function<std::string(uint64_t dropped)> notice);
  // Writes what is left, so it ends when the descriptor takes that.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Never blocks on the descriptor. `line` ends with a newline.
  void push(std::string_view line);
  // From now on lines go to `fd`, which becomes the writer's own. Lines that the file before it
  // does not take are lost.
  void write_to(int fd);
  // Waits until all lines that were pushed are written. False if that takes longer than `most`.
  bool flush(std::chrono::milliseconds most);
  // Lines that were dropped, or that the descriptor refused (a full disk).
  uint64_t dropped() const;

 private:
  struct File;
  struct Batch {
    std::shared_ptr<File> file;
    std::string lines;
  };

  void run();
  void write(const Batch& batch);
  bool is_current(const File& file) const;

  const std::function<std::string(uint64_t)> notice_;
  mutable std::mutex mutex_;
  std::condition_variable work_, written_;
  std::vector<Batch> pending_;  // One for each file; the last is the current one's.
  size_t pending_bytes_ = 0;
  uint64_t untold_ = 0;   // Dropped since the last notice.
  uint64_t dropped_ = 0;  // Ever.
  bool writing_ = false;
  bool stopping_ = false;
  std::thread thread_;  // The last: it uses all of the above.
};

}  // namespace weir::log
