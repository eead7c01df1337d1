// FileView: the bytes of a file, mapped read-only or borrowed. ModelFiles: a checkpoint's files by
// name, from a folder or compiled into the binary.
//
// Threads: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  FileView(FileView&& other) noexcept;
  FileView& operator=(FileView&& other) noexcept;
  ~FileView();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  const std::string& name() const { return name_; }    // For error messages.
  bool mapped() const { return mapping_ != nullptr; }  // Then `name` is the file's path.

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

  std::string name_;
  std::span<const std::byte> bytes_;
  std::unique_ptr<Mapping> mapping_;  // Null: the bytes are borrowed.
};

class ModelFiles {
 public:
  struct Embedded {
    std::string_view name;
    std::span<const std::byte> bytes;
  };

  // A folder with a config.json, or a model's folder in Hugging Face's cache (hub_cache.h); an
  // error names the folder and what was expected.
  static Result<ModelFiles> open(const std::string& folder);
  static ModelFiles embedded(std::string name, std::vector<Embedded> files);

  // The folder's last component, or the hub's ORG/NAME.
  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }  // Empty when compiled in.
  // There is something of that name. What is not a file that can be read (a link that leads
  // nowhere, a FIFO, a folder) is an error of open_file(), never as if it were not there.
  bool has(std::string_view file) const;
  Result<FileView> open_file(std::string_view file) const;
  // From now on `file` is `text` instead of what the folder holds. Views of it live as long as a
  // ModelFiles that has it.
  void replace(std::string file, std::string text);

 private:
  std::string name_;
  std::string folder_;
  std::vector<Embedded> embedded_;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> replaced_;
};

// Reads a whole small file; refuses more than `bytes_max`.
Result<std::string> read_file(const std::string& path, size_t bytes_max);

}  // namespace weir
