// HugeBuffer: zeroed anonymous memory, in 2 MiB pages where the kernel gives them.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace weir {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Memory for whole system pages is taken now, not when they are first touched; their bytes stay as
// they are, also where a thread writes to them meanwhile. False: the kernel cannot (before Linux 5.14) or has
// none left. REQUIRES: `begin` is at a system page.
bool populate(std::byte* begin, size_t bytes);

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

  // The memory of whole system pages in [begin, begin + bytes) goes back to the system; it holds
  // zeros, and is taken again, when it is next touched.
  void give_back(size_t begin, size_t bytes);
  // The memory of system pages that [begin, begin + bytes) reaches into is taken now, if it can be.
  void take(size_t begin, size_t bytes);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace weir
