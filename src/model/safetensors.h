// Safetensors: the named tensors of a checkpoint, in one file or in shards with an index, mapped
// and never copied. Knows names, types, shapes and bytes; what they mean is weight_map.h's
// business.
//
// Threads: immutable once opened.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/tensor.h"

namespace weir::model {

struct StoredTensor {
  std::string name;
  Tensor tensor;
  int32_t file = 0;   // Index of its file in the checkpoint.
  size_t offset = 0;  // Of its first byte in that file.
};

// The tensors of one file. The header is untrusted: lengths, types, shapes and offsets are checked,
// tensors may neither overlap nor leave holes, and the file ends where the last of them ends.
// Errors name the file, the tensor, what was expected and what was found.
Result<std::vector<StoredTensor>> parse_safetensors(std::string_view file_name,
                                                    std::span<const std::byte> bytes);

class Checkpoint {
 public:
  // model.safetensors, else the shards that model.safetensors.index.json names.
  static Result<Checkpoint> open(const ModelFiles& files);
  // One file, for tests and for fixtures that are not models.
  static Result<Checkpoint> from_file(FileView file);

  const StoredTensor* find(std::string_view name) const;  // Null if there is none.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  std::span<const FileView> files() const { return files_; }
  const FileView& file(const StoredTensor& tensor) const {
    return files_[static_cast<size_t>(tensor.file)];
  }
  // For messages: the file, or the index if there are shards.
  const std::string& name() const { return name_; }

 private:
  Result<void> add(FileView file);

  std::string name_;
  std::vector<FileView> files_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace weir::model
