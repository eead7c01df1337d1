// The header of a GGUF file as values: its metadata by key, and where its tensors are. What keys
// and names of tensors mean is gguf_model.h's business.
//
// Threads: pure functions and plain values. Texts and lists are views of the file's bytes, which
// outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "card/block_format.h"

namespace weir::card {

// One value of the metadata.
class GgufValue {
 public:
  enum class Kind : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64,
  };

  GgufValue() = default;
  // A value that stands alone, or `count` of them in a list. REQUIRES: `bytes` hold them, as the
  // file has them, and of strings each lies within `bytes`.
  GgufValue(Kind kind, bool list, uint64_t count, std::span<const std::byte> bytes)
      : kind_(kind), list_(list), count_(count), bytes_(bytes) {}

  bool is_list() const { return list_; }
  uint64_t count() const { return list_ ? count_ : 1; }
  // What it is, for messages: "a string", "a list of integers".
  std::string kind_text() const;

  // Nullopt where it is something else, or an integer beyond 63 bits.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // An integer too.
  std::optional<bool> flag() const;
  std::optional<std::string_view> text() const;
  // Of a list; a value that stands alone is a list of one.
  std::optional<std::vector<int64_t>> integers() const;  // Booleans are 0 and 1.
  std::optional<std::vector<double>> numbers() const;
  std::optional<std::vector<std::string_view>> texts() const;

 private:
  int64_t integer_at(size_t i) const;
  double number_at(size_t i) const;
  bool is_integer() const;

  Kind kind_ = Kind::kU8;  // Of the items, where it is a list.
  bool list_ = false;
  uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

// By key. Keys that no reader asks for mean nothing here.
class GgufMetadata {
 public:
  // False if there is one of that key.
  bool add(std::string_view key, const GgufValue& value);
  const GgufValue* find(std::string_view key) const;  // Null: none.
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, GgufValue, std::less<>> values_;
};

struct GgufTensor {
  std::string name;
  GgufTensorType type;
  std::vector<int64_t> shape;  // The last dimension is that of a row, as everywhere else.
  uint64_t offset = 0;         // Of its first byte in the file.

  uint64_t bytes() const;  // Of all its rows.
};

struct GgufHeader {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
};

// True if the bytes begin as a GGUF file does.
bool is_gguf(std::span<const std::byte> bytes);

// How many bytes from the file's beginning on its header takes; nullopt: more than are given. The
// error: whatever follows, it is none.
Result<std::optional<uint64_t>> gguf_head_bytes(std::string_view file,
                                                std::span<const std::byte> beginning);

// An error names the file and the key or tensor; kUnsupported for versions and types that are not
// read. Tensors lie within the file and do not overlap.
Result<GgufHeader> parse_gguf(std::string_view file, std::span<const std::byte> bytes);

}  // namespace weir::card
