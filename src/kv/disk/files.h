// Files: what the cache on disk asks of a file system. Tests have one that is full, or broken.
//
// Threads: any; a File's writes are one thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::kv::disk {

class File {
 public:
  virtual ~File() = default;

  // All of `to`, or an error. Offsets, lengths and memory are at multiples of kBlockBytes
  // (extent.h), here and in write().
  virtual Result<void> read(uint64_t offset, std::span<std::byte> to) = 0;
  virtual Result<void> write(uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Result<void> truncate(uint64_t bytes) = 0;
  // What was written is there after a crash of the machine.
  virtual Result<void> sync() = 0;
  virtual Result<uint64_t> size() const = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  // For reading and writing, past the page cache where the file system can. `create`: makes a new
  // file, and fails where there is one.
  virtual Result<std::unique_ptr<File>> open(const std::string& path, bool create) = 0;
  // A small file, whole. Written so that there is the old one or the new one after a crash.
  virtual Result<std::string> read_whole(const std::string& path, size_t bytes_max) = 0;
  virtual Result<void> write_whole(const std::string& path, std::string_view bytes) = 0;
  virtual Result<void> remove(const std::string& path) = 0;

  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    int64_t changed = 0;  // Seconds since 1970.
  };
  // The regular files of a folder.
  virtual Result<std::vector<Entry>> list(const std::string& folder) = 0;
  virtual Result<int64_t> free_bytes(const std::string& folder) = 0;
};

// Those of this machine.
std::unique_ptr<Files> local_files();

}  // namespace weir::kv::disk
