// The superblock and the index of a bundle of experts: any bytes give experts that lie within the
// file, or an error. Checksums are made right first: else nothing would come behind them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "ssd/expert_bundle.h"

namespace {

constexpr size_t kHead = weir::ssd::kBlockBytes, kIndexCrcAt = 48, kCrcAt = kHead - 4;

void store(std::span<std::byte> bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first bytes of the superblock, then the index: nobody guesses 4 KiB of nothing.
  constexpr size_t kFields = 64;
  const auto given = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(kHead);
  std::memcpy(bytes.data(), given.data(), std::min(size, kFields));
  if (size > kFields) bytes.insert(bytes.end(), given.begin() + kFields, given.end());
  uint32_t layers_done = 0, experts = 0;
  std::memcpy(&experts, bytes.data() + 36, 4);
  std::memcpy(&layers_done, bytes.data() + 40, 4);
  const uint64_t index = uint64_t{layers_done} * experts * 24;
  if (index <= bytes.size() - kHead)
    store(bytes, kIndexCrcAt, weir::crc32c(std::span(bytes).subspan(kHead, index)));
  store(bytes, kCrcAt, weir::crc32c(std::span(bytes).first(kCrcAt)));
  uint64_t file_bytes = 0;
  std::memcpy(&file_bytes, bytes.data() + 56, 8);
  const auto bundle = weir::ssd::ExpertBundle::parse(bytes, file_bytes);
  if (!bundle) return 0;
  if (bundle->index.size() != size_t{bundle->head.layers_done} * bundle->head.experts) std::abort();
  for (const weir::ssd::PackedExpert& e : bundle->index) {
    const uint64_t length = uint64_t{e.bytes[0]} + e.bytes[1];
    if (e.offset > file_bytes || length > file_bytes - e.offset) std::abort();
  }
  return 0;
}
