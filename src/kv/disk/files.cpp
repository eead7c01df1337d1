#include "kv/disk/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace weir::kv::disk {

namespace {

constexpr mode_t kPrivate = 0600;

tl::unexpected<Error> failed(const std::string& path, const char* what, int error) {
  return fail(ErrorCode::kIo, path + ": " + what + ": " + std::strerror(error));
}

class LocalFile final : public File {
 public:
  LocalFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() override { ::close(fd_); }

  Result<void> read(uint64_t offset, std::span<std::byte> to) override {
    while (!to.empty()) {
      const ssize_t got = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && (errno == EINTR || leave_direct(errno))) continue;
      if (got < 0) return failed(path_, "read", errno);
      if (got == 0) return fail(ErrorCode::kIo, path_ + ": it ends too early");
      offset += static_cast<uint64_t>(got);
      to = to.subspan(static_cast<size_t>(got));
    }
    return {};
  }

  Result<void> write(uint64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done < 0 && (errno == EINTR || leave_direct(errno))) continue;
      if (done < 0) return failed(path_, "write", errno);
      offset += static_cast<uint64_t>(done);
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return {};
  }

  Result<void> truncate(uint64_t bytes) override {
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return failed(path_, "cut", errno);
    return {};
  }

  Result<void> sync() override {
    if (::fdatasync(fd_) != 0) return failed(path_, "sync", errno);
    return {};
  }

  Result<uint64_t> size() const override {
    struct stat state {};
    if (::fstat(fd_, &state) != 0) return failed(path_, "look", errno);
    return static_cast<uint64_t>(state.st_size);
  }

 private:
  // Some file systems take the flag at open and refuse the transfer.
  bool leave_direct(int error) {
    if (error != EINVAL) return false;
    const int flags = ::fcntl(fd_, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0 && ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0;
  }

  const int fd_;
  const std::string path_;
};

Result<void> write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed(path, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  if (::fdatasync(fd) != 0) return failed(path, "sync", errno);
  return {};
}

class LocalFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, bool create) override {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0);
    int fd = ::open(path.c_str(), flags | O_DIRECT, kPrivate);
    // Refused after the file was made.
    if (fd < 0 && errno == EINVAL) fd = ::open(path.c_str(), flags & ~O_EXCL, kPrivate);
    if (fd < 0) return failed(path, "open", errno);
    return std::make_unique<LocalFile>(fd, path);
  }

  Result<std::string> read_whole(const std::string& path, size_t bytes_max) override {
    return read_file(path, bytes_max);
  }

  Result<void> write_whole(const std::string& path, std::string_view bytes) override {
    const std::string made = path + ".new";
    const int fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                          kPrivate);
    if (fd < 0) return failed(made, "open", errno);
    const Result<void> written = write_all(fd, made, bytes);
    ::close(fd);
    WEIR_TRY(written);
    if (::rename(made.c_str(), path.c_str()) != 0) return failed(path, "rename", errno);
    return {};
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, "remove", errno);
    return {};
  }

  Result<std::vector<Entry>> list(const std::string& folder) override {
    std::vector<Entry> entries;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      struct stat state {};
      if (::lstat(it->path().c_str(), &state) != 0 || !S_ISREG(state.st_mode)) continue;
      entries.push_back({it->path().filename().string(), static_cast<uint64_t>(state.st_size),
                         static_cast<int64_t>(state.st_mtime)});
    }
    if (error) return fail(ErrorCode::kIo, folder + ": " + error.message());
    return entries;
  }

  Result<int64_t> free_bytes(const std::string& folder) override {
    struct statvfs state {};
    if (::statvfs(folder.c_str(), &state) != 0) return failed(folder, "look", errno);
    return static_cast<int64_t>(state.f_bavail) * static_cast<int64_t>(state.f_frsize);
  }
};

}  // namespace

std::unique_ptr<Files> local_files() { return std::make_unique<LocalFiles>(); }

}  // namespace weir::kv::disk
