#include "base/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace weir {

namespace {

// The first two words of a file; empty ones where there are none.
struct Words {
  std::string first, second;
};
Words read_words(const std::string& path) {
  Words words;
  std::ifstream file(path);
  file >> words.first >> words.second;
  return words;
}

// -1 for "max", and where there is no file.
int64_t read_number(const std::string& path) {
  const std::string word = read_words(path).first;
  return word.empty() || word == "max" ? -1 : std::strtoll(word.c_str(), nullptr, 10);
}

// The bytes of files that a group's memory.stat counts as cached, whether they were used lately or
// not. Version 1's own numbers leave out the groups below; `prefix` names those that do not.
int64_t cached_files(const std::string& path, const std::string& prefix) {
  std::ifstream file(path);
  std::string word;
  int64_t value = 0, sum = 0;
  while (file >> word >> value)
    if (word == prefix + "inactive_file" || word == prefix + "active_file") sum += value;
  return sum;
}

// Whether "rw,cpu,cpuacct" has `name`.
bool lists(const std::string& list, std::string_view name) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');)
    if (word == name) return true;
  return false;
}

// "0::/path" is version 2's line; "9:memory:/path", or "4:cpu,cpuacct:/path", are version 1's.
std::string membership_path(std::string_view controller, const std::string& membership) {
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? !controllers.empty() : !lists(controllers, controller)) continue;
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    if (path.empty() || path.starts_with('/')) return path;
  }
  return {};
}

// The part of `path` below `ancestor`, or nothing if it is not below it. A path that goes up with
// ".." is that of a group outside of this process's namespace.
std::optional<std::string> below(const std::string& ancestor, const std::string& path) {
  if ((path + "/").find("/../") != std::string::npos) return std::nullopt;
  if (ancestor == "/") return path;
  if (!(path + "/").starts_with(ancestor + "/")) return std::nullopt;
  return path.substr(ancestor.size());
}

// A hierarchy as it is mounted, and where the process's own group lies below that.
struct Place {
  std::string folder, path;
};

// In mountinfo: "31 23 0:28 /root/of/mount /mount/point rw - cgroup cgroup rw,cpu,cpuacct". A
// container without a namespace of its own sees its group mounted, but the host's path to it.
std::optional<Place> mounted_at(std::string_view controller, const std::string& path,
                                const std::string& mounts) {
  std::optional<Place> outside;
  std::ifstream file(mounts);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, root, point, word, type, source, options;
    words >> skipped >> skipped >> skipped >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    if (controller.empty() ? type != "cgroup2" : type != "cgroup" || !lists(options, controller))
      continue;
    if (const auto own = below(root, path)) return Place{point, *own};
    if (!outside) outside = Place{point, ""};
  }
  return outside;
}

}  // namespace

std::vector<std::string> cgroup_folders(std::string_view controller, const CgroupFiles& files) {
  std::string path = membership_path(controller, files.membership);
  std::string folder = files.root;
  if (const auto place = mounted_at(controller, path, files.mounts)) {
    folder = place->folder;
    path = place->path;
  } else {
    if (!controller.empty()) folder.append("/").append(controller);
    path = below("/", path).value_or("");
  }
  std::vector<std::string> folders;
  for (; !path.empty(); path.resize(path.rfind('/'))) folders.push_back(folder + path);
  folders.push_back(folder);
  return folders;
}

int64_t cgroup_memory_left(const CgroupFiles& files) {
  const auto left_in = [&](std::string_view controller, const char* limit_file,
                           const char* used_file, const char* stat_prefix) {
    int64_t least = -1;
    for (const std::string& folder : cgroup_folders(controller, files)) {
      const int64_t limit = read_number(folder + limit_file);
      const int64_t used = read_number(folder + used_file);
      // Version 1 says "no limit" with a number near 2^63.
      if (limit <= 0 || limit >= (int64_t{1} << 60)) continue;
      // The kernel drops them before it refuses memory; what is written it writes out first. Files
      // in memory (tmpfs) are not among them.
      const int64_t cached = cached_files(folder + "/memory.stat", stat_prefix);
      const int64_t left = std::max<int64_t>(0, limit - std::max<int64_t>(0, used - cached));
      least = least < 0 ? left : std::min(least, left);
    }
    return least;
  };
  const int64_t v2 = left_in("", "/memory.max", "/memory.current", "");
  if (v2 >= 0) return v2;
  return left_in("memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_");
}

double cgroup_cores(const CgroupFiles& files) {
  double least = -1;
  const auto see = [&least](const Words& words) {  // "max" and -1 are no numbers above 0.
    const double quota = std::atof(words.first.c_str()), period = std::atof(words.second.c_str());
    if (!(quota > 0 && period > 0)) return;
    least = least < 0 ? quota / period : std::min(least, quota / period);
  };
  for (const std::string& folder : cgroup_folders("", files)) see(read_words(folder + "/cpu.max"));
  if (least >= 0) return least;
  for (const std::string& folder : cgroup_folders("cpu", files))
    see({read_words(folder + "/cpu.cfs_quota_us").first,
         read_words(folder + "/cpu.cfs_period_us").first});
  return least;
}

}  // namespace weir
