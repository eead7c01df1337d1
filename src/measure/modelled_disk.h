// ModelledDisk: a Disk for tests and benchmarks, of which speed and faults are known. Files'
// bytes are real or come from a function; time is the model's own, so that the same reads take the
// same time on every machine, or the real one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ssd/disk.h"
#include "ssd/file_table.h"

namespace weir::measure {

struct DiskModel {
  double bytes_per_second = 2e9;
  std::chrono::nanoseconds latency = std::chrono::microseconds(100);  // Of each read, overlapping.
  // Completions come in groups, as a virtual disk's do: each at the time of its group's last.
  int32_t completed_together = 1;
  int32_t depth = 256;
  bool real_time = false;  // wait() sleeps. False: it moves the model's clock instead.
};

// What goes wrong with reads that touch [begin, end) of a file.
struct DiskFault {
  enum class Kind : uint8_t {
    kError,  // The read fails with `error`.
    kShort,  // It returns `bytes` bytes (fewer than asked).
    kStall,  // It takes `delay` longer; std::chrono::nanoseconds::max(): until release_stalls().
  };
  Kind kind = Kind::kError;
  int32_t file = 0;
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX;
  int32_t times = 1;  // Reads that it befalls; -1: all.
  int32_t error = 0;
  uint32_t bytes = 0;
  std::chrono::nanoseconds delay{0};
};

// Threads: one owner.
//
// The disk transfers reads one after another, in the order in which they were submitted; each
// completes `latency` after its transfer.
class ModelledDisk final : public ssd::Disk {
 public:
  // Fills `out` with the bytes of the file at `offset`.
  using Contents = std::function<void(uint64_t offset, std::span<std::byte> out)>;

  explicit ModelledDisk(const DiskModel& model);

  Result<int32_t> open_file(const std::string& path) override;  // A real file's bytes.
  int32_t add_file(std::string name, uint64_t bytes, Contents contents);

  void add_fault(const DiskFault& fault);
  void release_stalls();
  void truncate(int32_t file, uint64_t bytes);
  void set_change(int32_t file, FileChange change);  // What file_state() says from now on.
  void refuse_direct(int32_t file);             // Its reads fail with EINVAL until leave_direct().
  void advance(std::chrono::nanoseconds time);  // REQUIRES: not real_time.

  // Reads taken since the start, in order; for tests to look at and to clear.
  std::vector<ssd::DiskRead>& submitted() { return submitted_; }
  int32_t in_flight() const { return static_cast<int32_t>(flights_.size()); }

  bool submit(const ssd::DiskRead& read) override;
  void flush() override {}
  int32_t poll(std::span<ssd::DiskDone> out) override;
  int32_t wait(std::span<ssd::DiskDone> out, std::chrono::nanoseconds timeout) override;
  bool leave_direct(int32_t file) override;
  const std::string& path(int32_t file) const override;
  FileState file_state(int32_t file) const override;
  std::string_view mode() const override { return "model"; }
  std::chrono::nanoseconds now() const override;

 private:
  struct File {
    std::string name;
    uint64_t bytes = 0;
    uint64_t opened_bytes = 0;
    Contents contents;
    FileChange change = FileChange::kNone;
    bool direct = true;
    bool refuses_direct = false;
  };
  struct Flight {
    ssd::DiskRead read;
    std::chrono::nanoseconds end{0};
    uint64_t group = 0;
    std::optional<DiskFault> fault;
  };

  File& at(int32_t file);
  const File& at(int32_t file) const;
  std::optional<DiskFault> take_fault(const ssd::DiskRead& read);
  std::chrono::nanoseconds visible_at(const Flight& flight) const;
  int32_t finish(const Flight& flight);

  const DiskModel model_;
  ssd::FileTable table_;  // Of real files; their numbers there are others.
  std::vector<File> files_;
  std::vector<Flight> flights_;
  std::vector<DiskFault> faults_;
  std::vector<ssd::DiskRead> submitted_;
  uint64_t submissions_ = 0;
  std::chrono::nanoseconds clock_{0};
  std::chrono::nanoseconds transfer_end_{0};
};

}  // namespace weir::measure
