// The folder of the prompt cache on disk: one that only its owner may enter, because what lies in
// it are prompts; in it a folder for each model and format, named by its fingerprint, which one
// server at a time may have.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace weir::kv::disk {

// A model's folder, and the lock on it for as long as this lives.
class Folder {
 public:
  // Makes what is not there. An error: it is another user's, others may enter it, or another
  // server has it.
  static Result<Folder> open(const std::string& root, const std::string& fingerprint);
  Folder(Folder&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder();

  const std::string& path() const { return path_; }

 private:
  Folder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

// What lies in the folders of all models.
struct FolderUse {
  std::string fingerprint;
  int64_t bytes = 0;
  int64_t changed = 0;    // Seconds since 1970.
  bool in_use = false;  // A server has it.
};
Result<std::vector<FolderUse>> folders_in(const std::string& root);

// Removes the folders that no server has. Returns what became free.
Result<int64_t> clear_folders(const std::string& root);
// The same until all that are left have at most so many bytes, the longest unused first. Folders
// that servers have stay.
Result<void> shrink_folders(const std::string& root, int64_t bytes_max);

}  // namespace weir::kv::disk
