// Reads a model's files in a cache again, and compares them with their hashes.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/cache.h"

namespace weir::hub {

enum class FileState : uint8_t {
  kRight,
  kWrong,
  kMissing,
  kUnread,   // The disk gives an error.
  kUnknown,  // Nothing says which hash it should have.
};

struct CheckedFile {
  std::string path = {};     // In the snapshot.
  std::string on_disk = {};  // Of the blob.
  int64_t size = 0;
  FileState state = FileState::kRight;
  std::string note = {};  // What was found where it is not right.
};

// All files of the snapshot that the name means, and those of the model that are missing there.
// `progress(done, total)` in bytes. kNotFound: there is no such snapshot.
Result<std::vector<CheckedFile>> check_model(
    const Cache& cache, const ModelName& name,
    const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace weir::hub
