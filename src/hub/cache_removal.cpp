#include "hub/cache_removal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "base/concat.h"
#include "hub/file_handle.h"
#include "hub/selection.h"

namespace weir::hub {

namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

// What a file takes of the disk, itself, not what it may lead to.
int64_t bytes_of(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? int64_t{info.st_blocks} * 512 : 0;
}

class Removal {
 public:
  Removal(const Cache& cache, const ModelName& name)
      : cache_(cache), name_(name), folder_(cache.model_folder(name.id)) {}

  Result<Removed> run();

 private:
  Result<void> check_idle() const;
  Result<void> remove_all();
  Result<void> remove_some(const std::string& commit);
  Result<void> remove_file(const fs::path& path);
  void remove_unlinked();
  void forget(const std::string& commit);

  const Cache& cache_;
  const ModelName& name_;
  const fs::path folder_;
  Removed removed_;
};

// Whatever is being fetched has its lock held.
Result<void> Removal::check_idle() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / "blobs", error)) {
    const std::string blob = entry.path().filename().string();
    if (entry.path().extension() == ".json" || blob.find('.') == std::string::npos) continue;
    const std::string lock = cache_.lock_path(name_.id, blob.substr(0, blob.find('.')));
    const FileHandle handle(::open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (handle.get() >= 0 && ::flock(handle.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(ErrorCode::kUnavailable, name_.id + ": another process is fetching it");
  }
  return {};
}

Result<void> Removal::remove_all() {
  std::error_code error;
  // Links are counted and removed as links: neither function follows them.
  for (const auto& entry : fs::recursive_directory_iterator(folder_, error)) {
    if (is_folder(entry.path())) continue;
    ++removed_.files;
    removed_.bytes += bytes_of(entry.path());
  }
  fs::remove_all(folder_, error);
  if (error) return fail(ErrorCode::kIo, folder_.string() + ": " + error.message());
  const fs::path locks = fs::path(cache_.folder()) / ".locks" / folder_.filename();
  if (is_folder(locks)) fs::remove_all(locks, error);
  return {};
}

Result<void> Removal::remove_file(const fs::path& path) {
  const int64_t bytes = bytes_of(path);
  if (::unlink(path.c_str()) != 0)
    return fail(
        ErrorCode::kIo,
        concat({path.string(), ": cannot be removed: ", std::generic_category().message(errno)}));
  ++removed_.files;
  removed_.bytes += bytes;
  return {};
}

// Blobs that no snapshot links to; parts of files are left for the download that has begun them.
void Removal::remove_unlinked() {
  std::set<std::string> linked;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / "snapshots", error))
    for (const TreeFile& file : files_in(entry.path().string())) linked.insert(file.blob);
  if (!is_folder(folder_ / "blobs")) return;
  for (const auto& entry : fs::directory_iterator(folder_ / "blobs", error)) {
    const std::string blob = entry.path().filename().string();
    if (is_blob_name(blob) && !linked.contains(blob)) (void)remove_file(entry.path());
  }
}

// The list of the commit's files, and the revisions that mean it.
void Removal::forget(const std::string& commit) {
  (void)::unlink((folder_ / "trees" / (commit + ".json")).c_str());
  const fs::path refs = folder_ / "refs";
  std::error_code error;
  for (fs::recursive_directory_iterator at(refs, error), end; at != end && !error;
       at.increment(error))
    if (at->is_regular_file(error) && !at->is_symlink(error) &&
        cache_.commit_of(name_.id, at->path().lexically_relative(refs).string()) == commit)
      (void)::unlink(at->path().c_str());
}

Result<void> Removal::remove_some(const std::string& commit) {
  const fs::path snapshot = cache_.snapshot_folder(name_.id, commit);
  if (!is_folder(folder_ / "snapshots") || !is_folder(snapshot))
    return fail(ErrorCode::kNotFound, name_.text() + ": is not in the cache");
  std::vector<TreeFile> files = files_in(snapshot.string());
  if (!name_.file.empty()) {
    Tree here{.commit = commit, .files = std::move(files)};
    Result<std::vector<TreeFile>> named = select_files(here, name_.file, {}, {});
    if (!named) return fail(named.error().code, name_.text() + ": " + named.error().message);
    files = std::move(*named);
  }
  for (const TreeFile& file : files) WEIR_TRY(remove_file(snapshot / file.path));
  if (name_.file.empty() || files_in(snapshot.string()).empty()) {
    std::error_code error;
    fs::remove_all(snapshot, error);
    forget(commit);
  }
  remove_unlinked();
  return {};
}

Result<Removed> Removal::run() {
  std::error_code error;
  if (fs::is_symlink(folder_, error))
    return fail(ErrorCode::kIo,
                folder_.string() + ": is a link: what it leads to is not this command's to delete");
  if (!is_folder(folder_))
    return fail(ErrorCode::kNotFound,
                concat({name_.id, ": is not in the cache, ", cache_.folder()}));
  WEIR_TRY(check_idle());
  if (!name_.revision_given && name_.file.empty()) {
    WEIR_TRY(remove_all());
    return removed_;
  }
  const std::optional<std::string> commit = cache_.commit_of(name_.id, name_.revision);
  if (!commit)
    return fail(ErrorCode::kNotFound,
                concat({name_.id, ": no revision '", name_.revision, "' of it is in the cache"}));
  WEIR_TRY(remove_some(*commit));
  if (fs::is_empty(folder_ / "snapshots", error) && !error) WEIR_TRY(remove_all());
  return removed_;
}

}  // namespace

Result<Removed> remove_model(const Cache& cache, const ModelName& name) {
  return Removal(cache, name).run();
}

}  // namespace weir::hub
