#include "card/hub_cache.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace weir::card {

namespace {

namespace fs = std::filesystem;

// "ORG/NAME" of "models--ORG--NAME", "NAME" of "models--NAME". An id has one slash at most, and
// names may hold "--" themselves.
std::optional<std::string> hub_name(std::string_view folder) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder.starts_with(kPrefix) || folder.size() == kPrefix.size()) return std::nullopt;
  folder.remove_prefix(kPrefix.size());
  const size_t dashes = folder.find("--");
  std::string name(folder.substr(0, dashes));
  if (dashes != std::string_view::npos) name.append("/").append(folder.substr(dashes + 2));
  return name;
}

std::vector<std::string> snapshots_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "snapshots", error))
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? text + ", ..." : text;
}

// Which of a model's snapshots to take.
Result<std::string> choose_snapshot(const fs::path& folder) {
  const std::vector<std::string> names = snapshots_of(folder);
  const std::string where = folder.string() + ": a model in Hugging Face's cache: ";
  if (names.empty())
    return fail(
        ErrorCode::kConfig,
        where + "expected a snapshot of it in snapshots; found none (is the download over?)");
  std::error_code error;
  const fs::path main = folder / "refs" / "main";
  if (fs::symlink_status(main, error).type() != fs::file_type::not_found) {
    constexpr size_t kRefBytesMax = 4096;
    WEIR_ASSIGN(std::string commit, read_file(main.string(), kRefBytesMax));
    commit.erase(std::min(commit.find_first_of(" \t\r\n"), commit.size()));
    if (std::ranges::find(names, commit) != names.end()) return commit;
    return fail(ErrorCode::kConfig, where + "expected the snapshot " + commit.substr(0, 80) +
                                        " that refs/main names; found " + list(names) +
                                        " (download it again, or give the folder of one)");
  }
  if (names.size() == 1) return names[0];
  return fail(ErrorCode::kConfig, where + "expected refs/main to name one of its " +
                                      std::to_string(names.size()) + " snapshots; found no such " +
                                      "file (give the folder of one: " + list(names) + ")");
}

}  // namespace

Result<ModelFolder> resolve_hub_folder(const std::string& folder) {
  const fs::path path(folder);
  std::error_code error;
  const auto name = hub_name(path.filename().string());
  if (name && !fs::is_regular_file(path / "config.json", error) &&
      fs::is_directory(path / "snapshots", error)) {
    WEIR_ASSIGN(const std::string commit, choose_snapshot(path));
    return ModelFolder{(path / "snapshots" / commit).string(), *name};
  }
  const fs::path above = path.parent_path();
  if (above.filename() == "snapshots")
    if (const auto owner = hub_name(above.parent_path().filename().string()))
      return ModelFolder{folder, *owner};
  return ModelFolder{folder, path.filename().string()};
}

}  // namespace weir::card
