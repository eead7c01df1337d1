#include "hub/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/check.h"
#include "base/concat.h"
#include "base/file.h"
#include "hub/selection.h"

namespace weir::hub {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";
// Tree::kFilesMax entries of a long path each.
constexpr size_t kTreeBytesMax = size_t{128} << 20;
constexpr size_t kRefBytesMax = 4096;

tl::unexpected<Error> io_error(const fs::path& path, const char* what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return fail(full ? ErrorCode::kCapacity : ErrorCode::kIo,
              concat({path.string(), ": ", what, ": ", std::generic_category().message(error)}));
}

bool is_file_of(const fs::path& path, int64_t size) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == size;
}

// Makes `folder`, which may lie where its owner has put it, and the folders of `below` in it one by
// one: the hub has named those, and none of them may be a link to elsewhere.
Result<void> make_folders(const fs::path& folder, const fs::path& below) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return io_error(folder, "cannot be made", error.value());
  fs::path path = folder;
  for (const fs::path& part : below) {
    path /= part;
    fs::create_directory(path, error);
    if (fs::symlink_status(path, error).type() != fs::file_type::directory)
      return fail(ErrorCode::kIo, path.string() + ": expected a folder; found something else");
  }
  return {};
}

// A name beside `path` that no other process writes to at the same time.
fs::path part_of(const fs::path& path) {
  return path.string() + ".weir-part" + std::to_string(::getpid());
}

// By another name and a rename: readers see the old text or the new.
Result<void> write_text(const fs::path& path, std::string_view text) {
  const fs::path part = part_of(path);
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return io_error(part, "cannot be written", errno);
  if (std::rename(part.c_str(), path.c_str()) != 0)
    return io_error(path, "cannot be replaced", errno);
  return {};
}

Result<void> make_link(const fs::path& path, const std::string& target) {
  std::error_code error;
  if (fs::is_symlink(path, error) && fs::read_symlink(path, error) == target) return {};
  const fs::path part = part_of(path);
  (void)::unlink(part.c_str());
  if (::symlink(target.c_str(), part.c_str()) != 0)
    return io_error(part, "a link cannot be made", errno);
  if (std::rename(part.c_str(), path.c_str()) == 0) return {};
  const int number = errno;
  (void)::unlink(part.c_str());
  return io_error(path, "cannot be replaced by a link", number);
}

// Backup programs pass over folders with this file (bford.info/cachedir).
void tag_cache(const fs::path& folder) {
  std::error_code error;
  const fs::path path = folder / "CACHEDIR.TAG";
  if (fs::exists(path, error)) return;
  (void)write_text(path,
                   "Signature: 8a477f597d28d172789f06886806bc55\n"
                   "# This file marks a folder of models that can be fetched again.\n");
}

void add_files(const fs::path& folder, const std::string& below, std::vector<TreeFile>& files) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string path = below + entry.path().filename().string();
    if (!is_safe_path(path) || files.size() >= Tree::kFilesMax) continue;
    const fs::file_type type = entry.symlink_status(error).type();
    if (type == fs::file_type::directory) {
      add_files(entry.path(), path + "/", files);
      continue;
    }
    struct stat info {};
    if (::stat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    TreeFile file{.path = path, .size = info.st_size};
    if (type == fs::file_type::symlink)
      if (std::string name = fs::read_symlink(entry.path(), error).filename().string();
          is_blob_name(name))
        file.blob = std::move(name);
    files.push_back(std::move(file));
  }
}

std::string model_path_of(const std::string& folder, const std::vector<TreeFile>& files) {
  const bool has_config = std::ranges::find(files, "config.json", &TreeFile::path) != files.end();
  for (const TreeFile& file : files)
    if (!has_config && file.path.ends_with(".gguf")) return folder + "/" + file.path;
  return folder;
}

}  // namespace

std::string id_of_folder(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  const size_t dashes = name.find("--");
  if (dashes == std::string_view::npos) return {};
  std::string id = concat({name.substr(0, dashes), "/", name.substr(dashes + 2)});
  return is_repo_id(id) ? id : std::string();
}

std::vector<TreeFile> files_in(const std::string& snapshot_folder) {
  std::vector<TreeFile> files;
  std::error_code error;
  if (fs::symlink_status(snapshot_folder, error).type() == fs::file_type::directory)
    add_files(snapshot_folder, "", files);
  std::ranges::sort(files, {}, &TreeFile::path);
  return files;
}

std::string Cache::model_folder(std::string_view id) const {
  CHECK(is_repo_id(id));
  const size_t slash = id.find('/');
  return concat({folder_, "/", kPrefix, id.substr(0, slash), "--", id.substr(slash + 1)});
}

std::string Cache::snapshot_folder(std::string_view id, std::string_view commit) const {
  return concat({model_folder(id), "/snapshots/", commit});
}

std::string Cache::blob_path(std::string_view id, std::string_view blob) const {
  return concat({model_folder(id), "/blobs/", blob});
}

std::string Cache::lock_path(std::string_view id, std::string_view blob) const {
  const std::string model = fs::path(model_folder(id)).filename().string();
  return concat({folder_, "/.locks/", model, "/", blob, ".lock"});
}

std::optional<std::string> Cache::commit_of(std::string_view id, std::string_view revision) const {
  if (is_commit(revision)) return std::string(revision);
  const Result<std::string> text =
      read_file(concat({model_folder(id), "/refs/", revision}), kRefBytesMax);
  if (!text) return std::nullopt;
  const std::string commit = text->substr(0, text->find_first_of(" \t\r\n"));
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

std::optional<Tree> Cache::tree_of(std::string_view id, std::string_view commit) const {
  const Result<std::string> text =
      read_file(concat({model_folder(id), "/trees/", commit, ".json"}), kTreeBytesMax);
  if (!text) return std::nullopt;
  Result<Tree> tree = Tree::from_json(*text, std::string(commit));
  return tree ? std::optional(std::move(*tree)) : std::nullopt;
}

std::optional<Snapshot> Cache::find(const ModelName& name) const {
  const std::optional<std::string> commit = commit_of(name.id, name.revision);
  if (!commit) return std::nullopt;
  Snapshot found{.id = name.id,
                 .commit = *commit,
                 .folder = snapshot_folder(name.id, *commit),
                 .model_path = {},
                 .files = {}};
  // An older huggingface_hub has left no list: then what is there must agree with itself, the
  // shards with their index and the parts with their count.
  std::optional<Tree> tree = tree_of(name.id, *commit);
  if (!tree) tree = Tree{.commit = *commit, .files = files_in(found.folder)};
  std::string index;
  if (wants_index(*tree, name.file, {})) {
    Result<std::string> text = read_file(concat({found.folder, "/", kIndexFile}), kTreeBytesMax);
    if (!text) return std::nullopt;
    index = std::move(*text);
  }
  Result<std::vector<TreeFile>> files = select_files(*tree, name.file, {}, index);
  if (!files) return std::nullopt;
  for (const TreeFile& file : *files)
    if (!is_file_of(fs::path(found.folder) / file.path, file.size)) return std::nullopt;
  found.files = std::move(*files);
  found.model_path = model_path_of(found.folder, found.files);
  return found;
}

Result<void> Cache::begin(const HubModel& model) const {
  const fs::path folder = model_folder(model.name.id);
  WEIR_TRY(make_folders(folder / "trees", ""));
  tag_cache(folder_);
  return write_text(folder / "trees" / (model.tree.commit + ".json"), model.tree.to_json());
}

Result<Snapshot> Cache::publish(const HubModel& model) const {
  const fs::path folder = model_folder(model.name.id);
  Snapshot done{.id = model.name.id,
                .commit = model.tree.commit,
                .folder = snapshot_folder(model.name.id, model.tree.commit),
                .model_path = {},
                .files = model.files};
  for (const TreeFile& file : model.files) {
    CHECK(is_safe_path(file.path) && is_blob_name(file.blob));
    const fs::path path(file.path);
    WEIR_TRY(make_folders(folder / "snapshots", fs::path(model.tree.commit) / path.parent_path()));
    std::string target = "../../blobs/" + file.blob;
    for (auto slashes = std::ranges::count(file.path, '/'); slashes > 0; --slashes)
      target.insert(0, "../");
    WEIR_TRY(make_link(fs::path(done.folder) / path, target));
  }
  if (!is_commit(model.name.revision)) {
    const fs::path ref(model.name.revision);
    WEIR_TRY(make_folders(folder / "refs", ref.parent_path()));
    WEIR_TRY(write_text(folder / "refs" / ref, model.tree.commit));
  }
  done.model_path = model_path_of(done.folder, done.files);
  return done;
}

}  // namespace weir::hub
