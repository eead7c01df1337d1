// FileTable: the files that a Disk reads: descriptors, how each is read (O_DIRECT, or through the
// page cache without staying in it), and what it was when it was opened.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ssd/disk.h"

namespace weir::ssd {

// preadv2's and io_uring's flag to read through the page cache and leave nothing there: Linux 6.14,
// some file systems. Named here because Debian 12's headers do not.
inline constexpr int kDontCache = 0x80;

// Threads: one owner; path() and state() also others, while no file is opened.
class FileTable {
 public:
  // kept: what is read without O_DIRECT stays in the page cache.
  explicit FileTable(bool kept = false) : kept_(kept) {}
  FileTable(const FileTable&) = delete;
  FileTable& operator=(const FileTable&) = delete;
  ~FileTable();

  Result<int32_t> open(const std::string& path, bool direct);
  bool leave_direct(int32_t file);

  int32_t count() const { return static_cast<int32_t>(files_.size()); }
  int fd(int32_t file) const { return at(file).fd; }
  bool direct(int32_t file) const { return at(file).direct; }
  int read_flags(int32_t file) const { return at(file).dont_cache ? kDontCache : 0; }

  // After a read: takes it out of the page cache, where the kernel could not do that by itself.
  void drop_behind(int32_t file, uint64_t offset, uint32_t bytes) const;

  const std::string& path(int32_t file) const { return at(file).path; }
  FileState state(int32_t file) const;

  // How files are read: "O_DIRECT", "buffered", "buffered (RWF_DONTCACHE)",
  // "page cache", or the numbers of each.
  std::string describe() const;

 private:
  struct File {
    std::string path;
    int fd = -1;
    bool direct = false;
    bool dont_cache = false;
    struct stat opened {};
  };

  const File& at(int32_t file) const;
  void set_buffered(File& file) const;

  const bool kept_;
  std::vector<File> files_;
};

}  // namespace weir::ssd
