#include "base/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/check.h"

namespace weir {

namespace {

size_t system_page() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

bool populate(std::byte* begin, size_t bytes) {
#ifndef MADV_POPULATE_WRITE
  constexpr int MADV_POPULATE_WRITE = 23;  // As Linux has it; older headers do not.
#endif
  return ::madvise(begin, bytes, MADV_POPULATE_WRITE) == 0;
}

Result<HugeBuffer> HugeBuffer::allocate(size_t bytes) {
  HugeBuffer buffer;
  if (bytes == 0) return buffer;
  // Mapped with a huge page to spare and trimmed, so that the start is aligned to one: transparent
  // huge pages cover only aligned ranges.
  const size_t rounded = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const size_t mapped = rounded + kHugePageBytes;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return fail(ErrorCode::kCapacity, "no memory for " + std::to_string(bytes >> 20) + " MiB");
  auto* const begin = static_cast<std::byte*>(raw);
  const size_t head =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(raw) % kHugePageBytes) % kHugePageBytes;
  const size_t tail = kHugePageBytes - head;
  if (head > 0) ::munmap(begin, head);
  ::munmap(begin + head + rounded, tail);  // Never empty: the head is less than a huge page.
  buffer.data_ = begin + head;
  buffer.bytes_ = rounded;
  (void)::madvise(buffer.data_, rounded, MADV_HUGEPAGE);  // Advice: 4 KiB pages work too.
  return buffer;
}

void HugeBuffer::give_back(size_t begin, size_t bytes) {
  const size_t page = system_page();
  CHECK(begin <= bytes_ && bytes <= bytes_ - begin);
  const size_t first = (begin + page - 1) / page * page;
  const size_t last = (begin + bytes) / page * page;
  if (first < last) (void)::madvise(data_ + first, last - first, MADV_DONTNEED);
}

void HugeBuffer::take(size_t begin, size_t bytes) {
  const size_t page = system_page();
  CHECK(begin <= bytes_ && bytes <= bytes_ - begin);
  const size_t first = begin / page * page;
  (void)populate(data_ + first, (begin + bytes + page - 1) / page * page - first);
}

HugeBuffer::~HugeBuffer() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace weir
