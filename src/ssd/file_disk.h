// FileDisk: what Disks that read real files have in common: the files, the name of how they are
// read, and the processor time that it takes.
#pragma once

#include <chrono>
#include <string>

#include "base/metrics.h"
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
  std::chrono::nanoseconds cpu_time() const final {
    return std::chrono::nanoseconds(static_cast<int64_t>(cpu_ns_.value()));
  }

 protected:
  // Adds the processor time of its thread, while it lives, to that of reads. Sleep is none.
  class CpuScope {
   public:
    explicit CpuScope(FileDisk& disk) : cpu_ns_(disk.cpu_ns_) {}
    ~CpuScope() { cpu_ns_.add(thread_cpu_ns() - begin_); }
    CpuScope(const CpuScope&) = delete;
    CpuScope& operator=(const CpuScope&) = delete;

   private:
    static uint64_t thread_cpu_ns();

    Counter& cpu_ns_;
    const uint64_t begin_ = thread_cpu_ns();
  };

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
  Counter cpu_ns_;
};

}  // namespace weir::ssd
