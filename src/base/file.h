// FileView: the bytes of a file, mapped read-only or borrowed; or of a file that is not here, whose
// beginning is known.
//
// Threads: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file_state.h"
#include "base/result.h"

namespace weir {

class FileView {
 public:
  FileView();
  // Maps the whole file privately and read-only. An empty file gives an empty view. Where the file
  // is cut while it is mapped the lost bytes become zeros (MappingGuard).
  static Result<FileView> map(const std::string& path);
  // Borrows bytes that outlive every view (compiled-in data, tests).
  static FileView borrow(std::string name, std::span<const std::byte> bytes);
  // A file of `bytes` bytes of which only `head`, its beginning, is known: the others read as
  // zeros, and take no memory. For readers of headers, which ask for no more.
  static Result<FileView> beginning(std::string name, std::string_view head, uint64_t bytes);

  FileView(FileView&& other) noexcept;
  FileView& operator=(FileView&& other) noexcept;
  ~FileView();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  const std::string& name() const { return name_; }    // For error messages.
  bool mapped() const { return mapping_ != nullptr; }  // Then `name` is the file's path.
  // Numbers that lie beyond the headers are zeros, whatever the file has there.
  bool only_beginning() const { return beginning_ != nullptr; }

  // What has become of the file since it was mapped. REQUIRES: mapped().
  FileState state() const;
  // Some of its bytes could not be read when they were needed, and are zeros now.
  bool lost() const;
  // kUnavailable if the bytes may be others than those that were mapped. Asks the file system.
  Result<void> check_unchanged() const;

  // Tells the kernel that these bytes are not needed in memory any more (they stay readable).
  void drop(size_t offset, size_t bytes) const;

 private:
  struct Mapping;
  class Pages;

  std::string name_;
  std::span<const std::byte> bytes_;
  std::unique_ptr<Mapping> mapping_;  // Of a file,
  std::unique_ptr<Pages> beginning_;  // or of memory that looks like one. Neither: borrowed.
};

// Reads a whole small file; refuses more than `bytes_max`.
Result<std::string> read_file(const std::string& path, size_t bytes_max);

}  // namespace weir
