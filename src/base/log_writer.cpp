#include "base/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace weir::log {

namespace {

// A pipe takes so many bytes at once or none, so lines of several programs do not mix in it.
constexpr size_t kWriteBytesMax = PIPE_BUF;
// How often a file that takes nothing is asked whether another has come in its place.
constexpr int kPollMs = 100;

// The beginning of `lines` that is written at once: whole lines, as many as may be; or one longer.
std::string_view next_piece(std::string_view lines) {
  const size_t end = lines.substr(0, kWriteBytesMax).rfind('\n');
  if (end != std::string_view::npos) return lines.substr(0, end + 1);
  return lines.substr(0, lines.find('\n') + 1);
}

uint64_t count_lines(std::string_view lines) {
  return static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
}

}  // namespace

struct LogWriter::File {
  const int fd;
  const bool is_ours;
  File(int fd_in, bool is_ours_in) : fd(fd_in), is_ours(is_ours_in) {}
  ~File() {
    if (is_ours) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

LogWriter::LogWriter(int fd, std::function<std::string(uint64_t)> notice)
    : notice_(std::move(notice)) {
  pending_.push_back({std::make_shared<File>(fd, false), {}});
  // Signals are others' business: this thread may exist before they are told how to take them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "weir-log");
}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void LogWriter::push(std::string_view line) {
  const std::lock_guard lock(mutex_);
  // Once a line is missing the later ones are, too, until there is room for many.
  if (untold_ > 0 || line.size() > kPendingBytesMax - pending_bytes_) {
    ++untold_;
    ++dropped_;
  } else {
    pending_.back().lines += line;
    pending_bytes_ += line.size();
  }
  if (!writing_) work_.notify_one();
}

void LogWriter::write_to(int fd) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({std::make_shared<File>(fd, true), {}});
}

bool LogWriter::flush(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return written_.wait_for(lock, most,
                           [this] { return pending_bytes_ == 0 && untold_ == 0 && !writing_; });
}

uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return pending_bytes_ > 0 || untold_ > 0 || stopping_; });
    if (pending_bytes_ == 0 && untold_ == 0) return;  // Stopping.
    std::vector<Batch> batches = std::exchange(pending_, {});
    pending_.push_back({batches.back().file, {}});
    pending_bytes_ = 0;
    const uint64_t untold = std::exchange(untold_, 0);
    writing_ = true;
    lock.unlock();
    // They were dropped when the last of these lines had come.
    if (untold > 0) batches.back().lines += notice_(untold);
    for (const Batch& batch : batches) write(batch);
    batches.clear();
    lock.lock();
    writing_ = false;
    written_.notify_all();
  }
}

bool LogWriter::is_current(const File& file) const {
  const std::lock_guard lock(mutex_);
  return pending_.back().file.get() == &file;
}

void LogWriter::write(const Batch& batch) {
  const File& file = *batch.file;
  std::string_view rest = batch.lines;
  while (!rest.empty()) {
    pollfd state{file.fd, POLLOUT, 0};
    const int ready = ::poll(&state, 1, kPollMs);
    if (ready == 0 && is_current(file)) continue;
    const std::string_view piece = next_piece(rest);
    // What is written in part goes on below: only pipes do that, and only with a long line.
    const ssize_t count = ready == 0 ? 0 : ::write(file.fd, piece.data(), piece.size());
    if (count > 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (ready != 0 && (errno == EINTR || errno == EAGAIN)) {
      ::poll(nullptr, 0, 1);
    } else {
      const std::string_view lost = ready == 0 ? rest : piece;
      const std::lock_guard lock(mutex_);
      dropped_ += count_lines(lost);
      rest.remove_prefix(lost.size());
    }
  }
}

}  // namespace weir::log
