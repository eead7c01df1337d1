// FileDisk: what Disks that read real files have in common: the files, and the name of how they
// are read.
#pragma once

#include <string>

#include "ssd/disk.h"
#include "ssd/file_table.h"

namespace weir::ssd {

// Threads: as Disk.
class FileDisk : public Disk {
 public:
  Result<int32_t> open_file(const std::string& path) final;
  bool leave_direct(int32_t file) final;
  const std::string& path(int32_t file) const final { return files_.path(file); }
  FileState file_state(int32_t file) const final { return files_.state(file); }
  std::string_view mode() const final { return mode_; }

 protected:
  // means: "io_uring", "pread x 4".
  FileDisk(const DiskOptions& options, std::string means);

  const DiskOptions& options() const { return options_; }
  const FileTable& files() const { return files_; }

 private:
  void name_mode() { mode_ = means_ + ", " + files_.describe(); }

  const DiskOptions options_;
  const std::string means_;
  FileTable files_;
  std::string mode_;
};

}  // namespace weir::ssd
