#include "cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace weir {

namespace {

struct Names {
  std::string folder;  // Under the root.
  std::string limit, used;
};

int64_t read_number(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word) || word == "max") return -1;
  return std::strtoll(word.c_str(), nullptr, 10);
}

// The least that `path` and its ancestors leave. A path that is not there is one outside of this
// container, whose own group is then the root.
int64_t left_in(const Names& names, std::string path) {
  int64_t least = -1;
  while (true) {
    const std::string folder = names.folder + path + "/";
    const int64_t limit = read_number(folder + names.limit),
                  used = read_number(folder + names.used);
    // Version 1 says "no limit" with a number near 2^63.
    if (limit > 0 && limit < (int64_t{1} << 60)) {
      const int64_t left = std::max<int64_t>(0, limit - std::max<int64_t>(0, used));
      least = least < 0 ? left : std::min(least, left);
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
  }
}

// "0::/path" is version 2; "9:memory:/path", or "4:cpu,memory:/path", version 1.
bool is_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

int64_t cgroup_memory_left(const std::string& root, const std::string& membership) {
  std::string v1_path, v2_path;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    if (!path.empty() && !path.starts_with('/')) continue;
    if (controllers.empty()) v2_path = path;
    if (is_memory(controllers)) v1_path = path;
  }
  const int64_t v2 = left_in({root, "memory.max", "memory.current"}, v2_path);
  if (v2 >= 0) return v2;
  return left_in({root + "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}, v1_path);
}

}  // namespace weir
