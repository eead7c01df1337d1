// What models a cache has, and how much of each.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hub/cache.h"

namespace weir::hub {

struct CachedSnapshot {
  std::string commit = {};
  std::vector<std::string> revisions = {};  // Branches and tags that mean it.
  size_t files = 0;
  int64_t bytes = 0;
  // What can be named by --model now: "org/name", "org/name@tag", "org/name:file.gguf".
  std::vector<std::string> names = {};
  int64_t missing = 0;  // Bytes until it is whole, where the cache has the list of its files.
};

struct CachedModel {
  std::string id = {};
  int64_t bytes = 0;      // Of its blobs, also of those that are not whole.
  int64_t last_used = 0;  // Seconds since 1970: when one of its files was read or written last.
  std::vector<CachedSnapshot> snapshots = {};
};

// By name.
std::vector<CachedModel> list_models(const Cache& cache);

}  // namespace weir::hub
