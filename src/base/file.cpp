#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/mapping_guard.h"

namespace weir {

namespace {

std::string reason() { return std::strerror(errno); }

tl::unexpected<Error> too_large(const std::string& path, size_t bytes_max, off_t found) {
  return fail(ErrorCode::kTooLarge, path + ": expected at most " + std::to_string(bytes_max) +
                                        " bytes, found " + std::to_string(found));
}

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

tl::unexpected<Error> not_regular(const std::string& path, mode_t mode) {
  return fail(ErrorCode::kIo, path + ": expected a regular file; found " + kind_of(mode));
}

// After open() has failed.
tl::unexpected<Error> cannot_open(const std::string& path) {
  const int number = errno;
  struct stat info {};
  if (number == ENOENT && ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    std::error_code error;
    return fail(ErrorCode::kIo,
                path + ": expected a regular file; found a link to " +
                    std::filesystem::read_symlink(path, error).string().substr(0, PATH_MAX) +
                    ", which is not there (is the download over?)");
  }
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return not_regular(path, info.st_mode);
  return fail(ErrorCode::kIo, path + ": cannot open: " + std::strerror(number));
}

class Fd {
 public:
  // Opening a FIFO would wait for a writer; on a regular file O_NONBLOCK says nothing.
  explicit Fd(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

class FileView::Pages {
 public:
  explicit Pages(std::span<const std::byte> mapped) : bytes_(mapped) {}
  ~Pages() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  const std::span<const std::byte> bytes_;
};

struct FileView::Mapping {
  Mapping(Fd file, const struct stat& info, std::span<const std::byte> mapped)
      : fd(std::move(file)), opened(info), pages(mapped), guard(mapped) {}

  const Fd fd;  // The file to ask about, whatever its path names by then.
  const struct stat opened;
  const Pages pages;
  const MappingGuard guard;  // Goes before the pages: their place may be another mapping's then.
};

FileView::FileView() = default;

Result<FileView> FileView::map(const std::string& path) {
  Fd fd(path);
  if (fd.get() < 0) return cannot_open(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail(ErrorCode::kIo, path + ": " + reason());
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  FileView view;
  view.name_ = path;
  if (info.st_size == 0) return view;
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return fail(ErrorCode::kIo, path + ": cannot map: " + reason());
  view.bytes_ = {static_cast<const std::byte*>(data), size};
  view.mapping_ = std::make_unique<Mapping>(std::move(fd), info, view.bytes_);
  return view;
}

FileView FileView::borrow(std::string name, std::span<const std::byte> bytes) {
  FileView view;
  view.name_ = std::move(name);
  view.bytes_ = bytes;
  return view;
}

Result<FileView> FileView::beginning(std::string name, std::string_view head, uint64_t bytes) {
  CHECK(head.size() <= bytes);
  FileView view;
  view.name_ = std::move(name);
  if (bytes == 0) return view;
  // Pages that nothing has written to are all the kernel's one page of zeros. Only the beginning is
  // ever writable: systems that promise no more memory than they have count what is.
  void* data =
      ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kCapacity, view.name_ + ": no addresses for a file of " +
                                          std::to_string(bytes) + " bytes: " + reason());
  view.bytes_ = {static_cast<const std::byte*>(data), bytes};
  view.beginning_ = std::make_unique<Pages>(view.bytes_);
  if (head.empty()) return view;
  if (::mprotect(data, head.size(), PROT_READ | PROT_WRITE) != 0)
    return fail(ErrorCode::kCapacity, view.name_ + ": no memory for its header: " + reason());
  std::memcpy(data, head.data(), head.size());
  if (::mprotect(data, head.size(), PROT_READ) != 0)
    return fail(ErrorCode::kCapacity, view.name_ + ": " + reason());
  return view;
}

FileView::FileView(FileView&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(std::exchange(other.bytes_, {})),
      mapping_(std::move(other.mapping_)),
      beginning_(std::move(other.beginning_)) {}

FileView& FileView::operator=(FileView&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(beginning_, other.beginning_);
  return *this;
}

FileView::~FileView() = default;

FileState FileView::state() const {
  CHECK(mapped());
  return file_state(mapping_->fd.get(), name_, mapping_->opened);
}

bool FileView::lost() const { return mapped() && mapping_->guard.lost(); }

Result<void> FileView::check_unchanged() const {
  if (!mapped()) return {};
  const FileState now = state();
  if (!lost() && !changed_in_place(now.change)) return {};
  const char* what = now.change == FileChange::kTruncated  ? " that was truncated since"
                     : now.change == FileChange::kModified ? " that was written to since"
                                                           : " that could not be read";
  return fail(ErrorCode::kUnavailable,
              name_ + ": expected the file of " + std::to_string(now.opened_bytes) +
                  " bytes that was opened, found one of " + std::to_string(now.bytes) + " bytes" +
                  what + "; a restart reads it anew");
}

void FileView::drop(size_t offset, size_t bytes) const {
  if (!mapped()) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + bytes) / page * page;
  if (begin >= end) return;
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  const Fd fd(path);
  if (fd.get() < 0) return cannot_open(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail(ErrorCode::kIo, path + ": " + reason());
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  if (info.st_size > static_cast<off_t>(bytes_max)) return too_large(path, bytes_max, info.st_size);
  // Read to its end, not mapped: a program may be writing it anew.
  constexpr size_t kPieceBytes = 64 << 10;
  std::string text;
  size_t length = 0;
  while (length <= bytes_max) {
    // At first all of it and a byte, so that the end is seen at once.
    text.resize(length + (length > 0 ? kPieceBytes : static_cast<size_t>(info.st_size) + 1));
    const ssize_t count = ::read(fd.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::kIo, path + ": cannot read: " + reason());
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  if (length > bytes_max) return too_large(path, bytes_max, static_cast<off_t>(length));
  text.resize(length);
  return text;
}

}  // namespace weir
