// Disk: reads of files that complete in any order, in whichever way the machine allows. Built for
// reads of hundreds of KiB into memory of our own: a virtual call for each is nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file_state.h"
#include "base/result.h"

namespace weir::ssd {

// Offsets, lengths and addresses of reads are multiples of it: what O_DIRECT asks for on every file
// system that has it (statx says 512 on most, never more than a page of 4 KiB).
inline constexpr uint64_t kBlockBytes = 4096;

// Longest read: far below the 2 GiB where Linux starts to cut reads short.
inline constexpr uint32_t kReadBytesMax = uint32_t{1} << 30;

// Files of one Disk. The largest checkpoints come in about 200.
inline constexpr int32_t kFilesMax = 1024;

struct DiskRead {
  int32_t file = 0;
  uint32_t bytes = 0;
  uint64_t offset = 0;
  std::byte* to = nullptr;
  uint64_t tag = 0;
};

struct DiskDone {
  uint64_t tag = 0;
  int32_t result = 0;  // Bytes read (fewer than asked: the file's end, or a short read), or -errno.
};

struct DiskOptions {
  bool uring = true;   // false: never io_uring.
  bool direct = true;  // false: never O_DIRECT.
  // What is read without O_DIRECT stays in the page cache: only to measure what that is worth.
  bool keep_cached = false;
  int32_t depth = 256;  // Reads in the kernel at once. A power of two.
  int32_t threads = 4;  // Of the pread pool, which is for kernels that refuse io_uring.
};

// Threads: one owner, except where a function says otherwise.
//
// Invariants:
// (1) Every read that submit() took is answered exactly once, by poll() or wait().
// (2) Until then its memory belongs to the kernel: a read cannot be cancelled.
class Disk {
 public:
  virtual ~Disk() = default;

  // Tries io_uring with O_DIRECT, then what the machine allows: a pool of threads where the kernel
  // refuses io_uring (EPERM under a container's seccomp filter, ENOSYS), and, file by file, reads
  // through the page cache, dropped afterwards, where O_DIRECT is refused. Fails only without
  // memory or threads.
  static Result<std::unique_ptr<Disk>> create(const DiskOptions& options);

  // The file's number, from 0. Reads a block to see whether O_DIRECT works: some file systems take
  // the flag at open and refuse the transfer.
  virtual Result<int32_t> open_file(const std::string& path) = 0;

  virtual bool submit(const DiskRead& read) = 0;      // false: no room now.
  virtual void flush() = 0;                           // One system call for what was submitted.
  virtual int32_t poll(std::span<DiskDone> out) = 0;  // Never blocks. How many of `out` it filled.
  // As poll(); where nothing has completed it sleeps until something has, at most `timeout`.
  virtual int32_t wait(std::span<DiskDone> out, std::chrono::nanoseconds timeout) = 0;

  // Reads of this file go through the page cache from now on. False: they did already.
  virtual bool leave_direct(int32_t file) = 0;

  // Any thread; no file may be opened meanwhile.
  virtual const std::string& path(int32_t file) const = 0;
  virtual FileState file_state(int32_t file) const = 0;  // Asks the file system.

  // Processor time that reads have taken: of system calls by the owner, and of the pool's threads.
  // Not that of interrupts, nor of threads of the kernel's own, which copy what io_uring reads
  // through the page cache.
  virtual std::chrono::nanoseconds cpu_time() const { return {}; }

  // "io_uring, O_DIRECT", "pread x 4, buffered": for logs and metrics. Valid until a file is
  // opened.
  virtual std::string_view mode() const = 0;

  // The clock that reads take time on: the steady clock, on any thread, or a model's own.
  virtual std::chrono::nanoseconds now() const;
};

}  // namespace weir::ssd
