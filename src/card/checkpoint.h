// Checkpoint: the named tensors of a model's files, mapped and never copied: name, type, shape,
// file, offset and bytes. A reader of each file format fills it (safetensors.h); what the tensors
// mean is weight_map.h's business, and how numbers are packed in them weight_format.h's.
//
// Threads: filled by one thread, immutable afterwards.
// Invariants: (1) names are unique; (2) a tensor's bytes lie within its file. Tensors of a format
// that stores blocks of numbers are bytes (U8) in rows of blocks: a type here has whole bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/tensor.h"
#include "card/block_format.h"

namespace weir::card {

struct StoredTensor {
  std::string name;
  Tensor tensor;
  int32_t file = 0;                     // Index of its file in the checkpoint.
  size_t offset = 0;                    // Of its first byte in that file.
  const BlockFormat* blocks = nullptr;  // Of rows of blocks, a constant; null: numbers.
};

// A name of a file's choosing in a message: long or unprintable ones are shortened and escaped.
std::string shown_name(std::string_view name);

class Checkpoint {
 public:
  // `name` is for messages: the file, or the index if there are shards.
  explicit Checkpoint(std::string name) : name_(std::move(name)) {}

  // A file and what its reader found in it; an error if another file has a tensor of that name.
  Result<void> add(FileView file, std::vector<StoredTensor> tensors);

  const StoredTensor* find(std::string_view name) const;  // Null if there is none.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  std::span<const FileView> files() const { return files_; }
  const FileView& file(const StoredTensor& tensor) const {
    return files_[static_cast<size_t>(tensor.file)];
  }
  const std::string& name() const { return name_; }

  // Norms that mean w + 1 are stored as that sum.
  bool norms_are_sums() const { return norms_are_sums_; }
  void set_norms_are_sums() { norms_are_sums_ = true; }

 private:
  std::string name_;
  std::vector<FileView> files_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  bool norms_are_sums_ = false;
};

}  // namespace weir::card
