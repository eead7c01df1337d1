#include "ssd/file_table.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/check.h"

namespace weir::ssd {

namespace {

tl::unexpected<Error> failure(const std::string& path, const std::string& expected, int error) {
  return fail(ErrorCode::kIo, path + ": expected " + expected +
                                  ", found: " + std::generic_category().message(error));
}

// Reads the first block as reads will be made. 0, or the errno.
int try_read(int fd, int flags) {
  alignas(kBlockBytes) std::byte block[kBlockBytes];
  iovec to{block, kBlockBytes};
  ssize_t got;
  do {
    got = ::preadv2(fd, &to, 1, 0, flags);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? errno : 0;
}

bool refuses(int error) { return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS; }

}  // namespace

FileTable::~FileTable() {
  for (const File& file : files_) ::close(file.fd);
}

const FileTable::File& FileTable::at(int32_t file) const {
  CHECK(file >= 0 && file < count());
  return files_[static_cast<size_t>(file)];
}

Result<int32_t> FileTable::open(const std::string& path, bool direct) {
  if (count() == kFilesMax)
    return fail(ErrorCode::kIo, path + ": expected at most " + std::to_string(kFilesMax) +
                                    " files, found one more");
  File file;
  file.path = path;
  file.direct = direct;
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
  if (file.fd < 0 && direct && errno == EINVAL) {
    file.direct = false;
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (file.fd < 0) return failure(path, "a file that can be read", errno);

  int error = ::fstat(file.fd, &file.opened) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(file.opened.st_mode)) {
    ::close(file.fd);
    return fail(ErrorCode::kIo, path + ": expected a regular file, found another kind");
  }
  if (error == 0) error = try_read(file.fd, 0);
  if (file.direct && refuses(error)) {
    (void)::fcntl(file.fd, F_SETFL, 0);  // O_DIRECT is the only flag that it has.
    file.direct = false;
    error = try_read(file.fd, 0);
  }
  if (error != 0) {
    ::close(file.fd);
    return failure(path, "a first block that can be read", error);
  }
  if (!file.direct) set_buffered(file);
  files_.push_back(std::move(file));
  return count() - 1;
}

bool FileTable::leave_direct(int32_t file) {
  if (!at(file).direct) return false;
  File& left = files_[static_cast<size_t>(file)];
  (void)::fcntl(left.fd, F_SETFL, 0);
  left.direct = false;
  set_buffered(left);
  return true;
}

void FileTable::set_buffered(File& file) const {
  // No read-ahead: what is asked for is all that is needed.
  (void)::posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM);
  file.dont_cache = !kept_ && try_read(file.fd, kDontCache) == 0;
}

void FileTable::drop_behind(int32_t file, uint64_t offset, uint32_t bytes) const {
  const File& f = at(file);
  if (f.direct || f.dont_cache || kept_) return;
  (void)::posix_fadvise(f.fd, static_cast<off_t>(offset), bytes, POSIX_FADV_DONTNEED);
}

FileState FileTable::state(int32_t file) const {
  const File& f = at(file);
  return file_state(f.fd, f.path, f.opened);
}

std::string FileTable::describe() const {
  const auto direct = std::count_if(files_.begin(), files_.end(), [](auto& f) { return f.direct; });
  const auto dont_cache =
      std::count_if(files_.begin(), files_.end(), [](auto& f) { return f.dont_cache; });
  if (count() == 0) return "no files";
  if (direct == count()) return "O_DIRECT";
  if (direct > 0) {
    return "O_DIRECT for " + std::to_string(direct) + " of " + std::to_string(count()) + " files";
  }
  if (kept_) return "page cache";
  return dont_cache == count() ? "buffered (RWF_DONTCACHE)" : "buffered";
}

}  // namespace weir::ssd
