#include "base/file_state.h"

namespace weir {

namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

const char* name_of(FileChange change) {
  switch (change) {
    case FileChange::kNone:
      return "unchanged";
    case FileChange::kReplaced:
      return "replaced";
    case FileChange::kModified:
      return "modified";
    case FileChange::kTruncated:
      return "truncated";
  }
  return "";
}

FileState file_state(int fd, const std::string& path, const struct stat& opened) {
  FileState state;
  state.opened_bytes = static_cast<uint64_t>(opened.st_size);
  struct stat now {};
  if (::fstat(fd, &now) != 0) return {FileChange::kTruncated, 0, state.opened_bytes};
  state.bytes = static_cast<uint64_t>(now.st_size);
  struct stat named {};
  if (now.st_size < opened.st_size)
    state.change = FileChange::kTruncated;
  else if (now.st_size != opened.st_size || !same_time(now.st_mtim, opened.st_mtim))
    state.change = FileChange::kModified;
  else if (::stat(path.c_str(), &named) != 0 || named.st_dev != now.st_dev ||
           named.st_ino != now.st_ino)
    state.change = FileChange::kReplaced;
  return state;
}

}  // namespace weir
