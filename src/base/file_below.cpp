#include "base/file_below.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/concat.h"

namespace weir {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_;
};

tl::unexpected<Error> not_opened(std::string_view path, int error) {
  // ELOOP: with O_NOFOLLOW, a symbolic link; ENOTDIR: one where a folder was expected.
  if (error == ELOOP || error == ENOTDIR)
    return fail(ErrorCode::kInvalid,
                concat({path, ": a part of it is a symbolic link or no folder"}));
  return fail(ErrorCode::kNotFound, concat({path, ": ", std::strerror(error)}));
}

Result<std::string> read_all(int file, std::string_view path, size_t bytes_max) {
  struct stat about {};
  if (::fstat(file, &about) != 0) return not_opened(path, errno);
  if (!S_ISREG(about.st_mode))
    return fail(ErrorCode::kUnsupported, concat({path, " is no regular file"}));
  const auto bytes = static_cast<size_t>(about.st_size);
  if (bytes > bytes_max)
    return fail(ErrorCode::kTooLarge, concat({path, " has ", std::to_string(bytes),
                                              " bytes; at most ", std::to_string(bytes_max),
                                              " are read"}));
  std::string text(bytes, '\0');
  size_t read = 0;
  while (read < bytes) {
    const ssize_t count = ::read(file, text.data() + read, bytes - read);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return not_opened(path, errno);
    if (count == 0) break;  // It was cut meanwhile.
    read += static_cast<size_t>(count);
  }
  text.resize(read);
  return text;
}

}  // namespace

Result<std::string> read_file_below(const std::string& folder, std::string_view path,
                                    size_t bytes_max) {
  Descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at.open())
    return fail(ErrorCode::kNotFound, concat({"the folder of files: ", std::strerror(errno)}));
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos)
      return fail(ErrorCode::kInvalid,
                  concat({path, ": expected names divided by single slashes, without . and .."}));
    const bool last = slash == std::string_view::npos;
    // A FIFO is opened without waiting for its writer, and then refused.
    const int flags = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
    Descriptor next(::openat(at.number(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    if (!next.open()) return not_opened(path, errno);
    if (last) return read_all(next.number(), path, bytes_max);
    at = std::move(next);
    rest = rest.substr(slash + 1);
  }
}

}  // namespace weir
