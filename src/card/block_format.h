// BlockFormat: how GGUF files store numbers: in blocks of a few along a row, each block with scales
// of its own. What the bytes of a block mean is model/rows/gguf_rows.h's business.
//
// Threads: constants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace weir::card {

struct BlockFormat {
  enum class Type : uint8_t {
    kQ4_0 = 2,
    kQ4_1 = 3,
    kQ5_0 = 6,
    kQ5_1 = 7,
    kQ8_0 = 8,
    kQ2_K = 10,
    kQ3_K = 11,
    kQ4_K = 12,
    kQ5_K = 13,
    kQ6_K = 14,
    kIq4Nl = 20,
    kIq4Xs = 23,
    kMxfp4 = 39,
    kNvfp4 = 40,
  };  // The numbers are those of the files.

  Type type = Type::kQ8_0;
  std::string_view name;
  int32_t numbers = 0;  // In a block.
  int32_t bytes = 0;    // Of a block.
};

// What a tensor's type says in a GGUF file: floats, or blocks.
struct GgufTensorType {
  DType floats = DType::kF32;
  const BlockFormat* blocks = nullptr;  // A constant; null: floats.

  int64_t numbers() const { return blocks != nullptr ? blocks->numbers : 1; }
  int64_t bytes() const { return blocks != nullptr ? blocks->bytes : dtype_bytes(floats); }
};

// Nullopt for a type that is not read; gguf_type_name() then says which it is.
std::optional<GgufTensorType> gguf_tensor_type(uint32_t id);
std::string gguf_type_name(uint32_t id);

}  // namespace weir::card
