// BundleWriter: writes weir-experts.bundle beside its own name, so that no process ever sees half
// of one. What was written stays when the process dies, and the next writer goes on after the last
// layer that was on the disk; only when there is no room is it deleted.
//
// Threads: one, but for write(), which all may call at once for different experts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "ssd/expert_bundle.h"

namespace weir::ssd {

class BundleWriter {
 public:
  // Takes the room for all of it from the disk, on which `reserve` bytes stay free. Errors say what
  // is needed and what there is. `plan`: from plan_bundle().
  static Result<std::unique_ptr<BundleWriter>> create(std::string path, ExpertBundle plan,
                                                      uint64_t reserve);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // The layers that an earlier writer has left, and those written since.
  int32_t layers_done() const { return static_cast<int32_t>(plan_.head.layers_done); }
  const std::string& path() const { return path_; }

  // The next layer's expert, as it lies in its slot. REQUIRES: `memory` at a multiple of
  // kBlockBytes; layer == layers_done().
  Result<void> write(int32_t layer, int32_t expert, const std::byte* memory);
  // All experts of the next layer have been written.
  Result<void> end_layer();
  // All layers have: the bundle gets its name.
  Result<void> finish();

 private:
  BundleWriter(std::string path, ExpertBundle plan)
      : path_(std::move(path)), part_path_(path_ + ".part"), plan_(std::move(plan)) {}
  Result<void> open();
  bool resume();
  Result<void> take_room(uint64_t reserve);
  Result<void> write_at(int fd, uint64_t offset, std::span<const std::byte> bytes);
  Result<void> write_head();
  Result<void> sync(int fd, const std::string& path);
  tl::unexpected<Error> failed(const std::string& what, int error);

  const std::string path_, part_path_;
  ExpertBundle plan_;
  int fd_ = -1;    // Through the page cache: superblock and index.
  int data_ = -1;  // Past it, where the file system can: the payload.
  std::atomic<bool> direct_{false};
};

}  // namespace weir::ssd
