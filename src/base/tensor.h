// Tensor: a typed view of memory with a shape. Owns nothing; row-major, contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace weir {

struct Tensor {
  static constexpr int kMaxRank = 6;

  DType type = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  const std::byte* data = nullptr;

  int64_t elements() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= shape[static_cast<size_t>(i)];
    return count;
  }
  int64_t bytes() const { return elements() * dtype_bytes(type); }
  explicit operator bool() const { return data != nullptr; }
};

// "F16 [12, 64]", for error messages.
std::string to_string(const Tensor& tensor);

}  // namespace weir
