#include "kv/disk/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace weir::kv::disk {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kPermissions = 0777;

tl::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kConfig, "disk cache " + path + ": " + why);
}

tl::unexpected<Error> failed(const std::string& path, const char* what) {
  return fail(ErrorCode::kIo, "disk cache " + path + ": cannot " + what + ": " +
                                  std::strerror(errno));
}

std::string octal(mode_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3)
    digits += static_cast<char>('0' + (mode >> shift & 7));
  return digits;
}

// Made with its parents if it is not there; if it is, ours, and no one else's to enter.
Result<void> own_folder(const std::string& path) {
  std::error_code error;
  if (const fs::path parent = fs::path(path).parent_path(); !parent.empty())
    fs::create_directories(parent, error);
  if (::mkdir(path.c_str(), kOwnerOnly) != 0 && errno != EEXIST) return failed(path, "make it");
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(path, "open it");
  struct stat state {};
  const int looked = ::fstat(fd, &state);
  ::close(fd);
  if (looked != 0) return failed(path, "look at it");
  if (state.st_uid != ::geteuid())
    return refused(path, "expected a folder of user " + std::to_string(::geteuid()) +
                             ", found one of user " + std::to_string(state.st_uid) +
                             ": the prompts in it would be theirs to read");
  if ((state.st_mode & kPermissions) != kOwnerOnly)
    return refused(path, "expected mode 0700, because prompts lie in it, found " +
                             octal(state.st_mode & kPermissions) + " (chmod 700 helps)");
  return {};
}

// -1: another process has it, or there is none.
int try_lock(const std::string& folder) {
  const int fd = ::open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

bool is_fingerprint(std::string_view name) {
  return name.size() >= 16 && std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_ours(const fs::path& name) {
  const fs::path end = name.extension();
  return name == "lock" || name == "secret" || end == ".kv" || end == ".idx" || end == ".new";
}

// Files of ours; others stay, and then the folder does.
Result<void> remove_folder(const std::string& path) {
  const int lock = try_lock(path);
  if (lock < 0) return {};
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (is_ours(it->path().filename())) files.push_back(it->path());
  for (const fs::path& file : files)
    if (file.filename() != "lock") fs::remove(file, error);
  fs::remove(path + "/lock", error);
  fs::remove(path, error);
  ::close(lock);
  if (error && error != std::errc::directory_not_empty)
    return fail(ErrorCode::kIo, "disk cache " + path + ": " + error.message());
  return {};
}

}  // namespace

Result<Folder> Folder::open(const std::string& root, const std::string& fingerprint) {
  WEIR_TRY(own_folder(root));
  std::string path = root + "/" + fingerprint;
  WEIR_TRY(own_folder(path));
  constexpr mode_t kPrivate = 0600;
  const int made = ::open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                          kPrivate);
  if (made < 0) return failed(path, "make its lock");
  ::close(made);
  const int lock = try_lock(path);
  if (lock < 0) return refused(path, "another server of the same model has it");
  return Folder(std::move(path), lock);
}

Folder::~Folder() {
  if (lock_ >= 0) ::close(lock_);
}

Result<std::vector<FolderUse>> folders_in(const std::string& root) {
  std::vector<FolderUse> found;
  std::error_code error;
  if (!fs::exists(root, error)) return found;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    FolderUse use{.fingerprint = it->path().filename().string()};
    struct stat state {};
    if (!is_fingerprint(use.fingerprint) || ::lstat(it->path().c_str(), &state) != 0 ||
        !S_ISDIR(state.st_mode))
      continue;
    std::error_code inner;
    for (fs::directory_iterator file(it->path(), inner); !inner && file != end;
         file.increment(inner)) {
      if (!is_ours(file->path().filename()) || ::lstat(file->path().c_str(), &state) != 0) continue;
      use.bytes += state.st_size;
      use.changed = std::max(use.changed, static_cast<int64_t>(state.st_mtime));
    }
    const int lock = try_lock(it->path().string());
    use.in_use = lock < 0;
    if (lock >= 0) ::close(lock);
    found.push_back(std::move(use));
  }
  if (error) return fail(ErrorCode::kIo, "disk cache " + root + ": " + error.message());
  std::ranges::sort(found, {}, &FolderUse::changed);
  return found;
}

Result<int64_t> clear_folders(const std::string& root) {
  WEIR_ASSIGN(const std::vector<FolderUse> folders, folders_in(root));
  int64_t freed = 0;
  for (const FolderUse& folder : folders) {
    if (folder.in_use) continue;
    WEIR_TRY(remove_folder(root + "/" + folder.fingerprint));
    freed += folder.bytes;
  }
  return freed;
}

Result<void> shrink_folders(const std::string& root, int64_t bytes_max) {
  WEIR_ASSIGN(const std::vector<FolderUse> folders, folders_in(root));
  int64_t bytes = 0;
  for (const FolderUse& folder : folders) bytes += folder.bytes;
  for (const FolderUse& folder : folders) {
    if (bytes <= bytes_max) break;
    if (folder.in_use) continue;
    WEIR_TRY(remove_folder(root + "/" + folder.fingerprint));
    bytes -= folder.bytes;
  }
  return {};
}

}  // namespace weir::kv::disk
