// HugeBuffer: zeroed anonymous memory, in 2 MiB pages where the kernel gives them.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace weir {

class HugeBuffer {
 public:
  HugeBuffer() = default;
  // Memory is taken from the kernel when first touched: let the thread that will use it touch it.
  static Result<HugeBuffer> allocate(size_t bytes);
  HugeBuffer(HugeBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HugeBuffer();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace weir
