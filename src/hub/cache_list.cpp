#include "hub/cache_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/concat.h"
#include "base/file.h"
#include "hub/selection.h"

namespace weir::hub {

namespace {

namespace fs = std::filesystem;

// As reading a folder goes on when one entry vanishes meanwhile, errors are no entries.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> revisions_of(const Cache& cache, const std::string& id,
                                      const std::string& commit) {
  const fs::path refs = fs::path(cache.model_folder(id)) / "refs";
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(refs, error), end; at != end && !error;
       at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    std::string name = at->path().lexically_relative(refs).string();
    if (cache.commit_of(id, name) == commit) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

// Without a revision where "main" is meant.
ModelName name_of(const std::string& id, const CachedSnapshot& snapshot) {
  ModelName name{.id = id};
  const std::vector<std::string>& known = snapshot.revisions;
  if (std::ranges::find(known, name.revision) != known.end()) return name;
  name.revision = known.empty() ? snapshot.commit : known[0];
  name.revision_given = true;
  return name;
}

int64_t missing_of(const Cache& cache, const std::string& id, const std::string& commit) {
  const std::optional<Tree> tree = cache.tree_of(id, commit);
  if (!tree) return 0;
  const std::string folder = cache.snapshot_folder(id, commit);
  const Result<std::string> index =
      read_file(concat({folder, "/", kIndexFile}), Client::kAnswerBytesMax);
  const Result<std::vector<TreeFile>> files = select_files(*tree, {}, {}, index.value_or(""));
  if (!files) return 0;
  int64_t missing = 0;
  for (const TreeFile& file : *files) {
    struct stat info {};
    if (::stat(concat({folder, "/", file.path}).c_str(), &info) != 0 || info.st_size != file.size)
      missing += file.size;
  }
  return missing;
}

CachedSnapshot snapshot_of(const Cache& cache, const std::string& id, const std::string& commit) {
  CachedSnapshot snapshot{.commit = commit};
  snapshot.revisions = revisions_of(cache, id, commit);
  const std::vector<TreeFile> files = files_in(cache.snapshot_folder(id, commit));
  snapshot.files = files.size();
  snapshot.bytes = total_bytes(files);
  ModelName name = name_of(id, snapshot);
  if (cache.find(name)) {
    snapshot.names = {name.text()};
    return snapshot;
  }
  for (const TreeFile& file : files) {
    name.file = file.path;
    // Of a model in parts its first.
    if (!file.path.ends_with(".gguf")) continue;
    const std::optional<Snapshot> found = cache.find(name);
    if (found && found->files[0].path == file.path) snapshot.names.push_back(name.text());
  }
  if (snapshot.names.empty()) snapshot.missing = missing_of(cache, id, commit);
  return snapshot;
}

}  // namespace

std::vector<CachedModel> list_models(const Cache& cache) {
  std::vector<CachedModel> models;
  for (const fs::path& path : entries_of(cache.folder())) {
    CachedModel model{.id = id_of_folder(path.filename().string())};
    if (model.id.empty()) continue;
    for (const fs::path& blob : entries_of(path / "blobs")) {
      struct stat info {};
      if (::stat(blob.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      model.bytes += std::min<int64_t>(info.st_size, info.st_blocks * 512);
      model.last_used = std::max<int64_t>({model.last_used, info.st_atime, info.st_mtime});
    }
    for (const fs::path& snapshot : entries_of(path / "snapshots"))
      if (const std::string commit = snapshot.filename().string(); is_commit(commit))
        model.snapshots.push_back(snapshot_of(cache, model.id, commit));
    // A download that was broken off has a list of files, and no links yet.
    for (const fs::path& tree : entries_of(path / "trees"))
      if (const std::string commit = tree.stem().string();
          is_commit(commit) && std::ranges::find(model.snapshots, commit,
                                                 &CachedSnapshot::commit) == model.snapshots.end())
        model.snapshots.push_back(snapshot_of(cache, model.id, commit));
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace weir::hub
