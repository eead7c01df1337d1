#include "base/meminfo.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace weir {

namespace {

// Of vm.overcommit_memory: no more than CommitLimit is ever reserved.
constexpr int kNeverOvercommit = 2;

// The bytes of `key` in lines "Key:  number kB"; -1 where there is none.
int64_t read_bytes(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    if (words >> name >> kib && name == key) return kib << 10;
  }
  return -1;
}

}  // namespace

int64_t memory_available(const MeminfoFiles& files) {
  return read_bytes(files.meminfo, "MemAvailable:");
}

int64_t memory_to_commit(const MeminfoFiles& files) {
  int mode = 0;
  if (!(std::ifstream(files.overcommit) >> mode) || mode != kNeverOvercommit) return -1;
  const int64_t limit = read_bytes(files.meminfo, "CommitLimit:");
  const int64_t reserved = read_bytes(files.meminfo, "Committed_AS:");
  if (limit < 0 || reserved < 0) return -1;
  return std::max<int64_t>(0, limit - reserved);
}

}  // namespace weir
