#include "hub/cache_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/concat.h"
#include "base/file.h"
#include "hub/blob_hash.h"
#include "hub/file_handle.h"
#include "hub/selection.h"

namespace weir::hub {

namespace {

namespace fs = std::filesystem;

void check_bytes(const TreeFile& expected, CheckedFile& file,
                 const std::function<void(int64_t bytes)>& progress) {
  constexpr size_t kPieceBytes = 1 << 20;
  const FileHandle handle(::open(file.on_disk.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  BlobHash hash(expected.blob, file.size);
  std::string piece(kPieceBytes, '\0');
  ssize_t count = handle.get() < 0 ? -1 : 1;
  while (count > 0) {
    count = ::read(handle.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR)
      count = 1;
    else if (count > 0) {
      hash.add({piece.data(), static_cast<size_t>(count)});
      progress(count);
    }
  }
  if (count < 0) {
    file.state = FileState::kUnread;
    file.note = std::generic_category().message(errno);
    return;
  }
  const std::string found = hash.finish();
  if (found == expected.blob) return;
  file.state = FileState::kWrong;
  file.note = concat({"expected the hash ", expected.blob, ", found ", found});
}

}  // namespace

Result<std::vector<CheckedFile>> check_model(
    const Cache& cache, const ModelName& name,
    const std::function<void(int64_t done, int64_t total)>& progress) {
  const std::optional<std::string> commit = cache.commit_of(name.id, name.revision);
  const std::string folder = commit ? cache.snapshot_folder(name.id, *commit) : "";
  const std::vector<TreeFile> here = commit ? files_in(folder) : std::vector<TreeFile>();
  const std::optional<Tree> tree = commit ? cache.tree_of(name.id, *commit) : std::nullopt;
  if (here.empty() && !tree)
    return fail(ErrorCode::kNotFound,
                concat({name.text(), ": is not in the cache, ", cache.folder()}));
  std::vector<CheckedFile> checked;
  int64_t done = 0;
  const int64_t total = total_bytes(here);
  for (const TreeFile& found : here) {
    const TreeFile* listed = tree ? tree->find(found.path) : nullptr;
    const TreeFile& expected = listed != nullptr ? *listed : found;
    std::error_code error;
    const fs::path link = fs::path(folder) / found.path;
    CheckedFile file{.path = found.path,
                     .on_disk = fs::weakly_canonical(link, error).string(),
                     .size = found.size};
    if (found.size != expected.size) {
      file.state = FileState::kWrong;
      file.note = concat({"expected ", std::to_string(expected.size), " bytes, found ",
                          std::to_string(found.size)});
    } else if (expected.blob.empty()) {
      file.state = FileState::kUnknown;
    } else {
      check_bytes(expected, file, [&](int64_t bytes) { progress(done += bytes, total); });
    }
    checked.push_back(std::move(file));
  }
  if (!tree) return checked;
  const Result<std::string> index =
      read_file(concat({folder, "/", kIndexFile}), Client::kAnswerBytesMax);
  const Result<std::vector<TreeFile>> wanted =
      select_files(*tree, name.file, {}, index.value_or(""));
  // Of a repository of several GGUF files nothing says which are wanted.
  for (const TreeFile& file : wanted.value_or(std::vector<TreeFile>()))
    if (std::ranges::find(here, file.path, &TreeFile::path) == here.end())
      checked.push_back({.path = file.path, .size = file.size, .state = FileState::kMissing});
  return checked;
}

}  // namespace weir::hub
