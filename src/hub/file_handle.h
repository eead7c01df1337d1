// FileHandle: a file descriptor that closes itself.
//
// Threads: one at a time.
#pragma once

#include <unistd.h>

#include <utility>

namespace weir::hub {

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}  // -1: none.
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace weir::hub
