// Segments of the prompt cache on disk and their sidecars: any bytes give extents that lie one after
// another within the file, or an error. Checksums are made right first: else nothing would come
// after them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "kv/disk/segment.h"

namespace {

using namespace weir::kv::disk;

const PageShape kShape = {.page_bytes = {96, 32}, .groups = 2};

void store(std::byte* to, uint32_t value) { std::memcpy(to, &value, sizeof value); }

void check(const SegmentContents& contents, uint64_t file_bytes) {
  uint64_t end = kSegmentBegin;
  for (const StoredExtent& extent : contents.extents) {
    if (extent.offset != end || extent.blocks < 1 || extent.blocks > kExtentBlocksMax) std::abort();
    if (extent.parent.pages < 0 || extent.parent.pages > kChainBlocksMax) std::abort();
    end += extent.bytes(kShape);
  }
  if (end != contents.end || end > file_bytes) std::abort();
}

class Bytes final : public File {
 public:
  explicit Bytes(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  weir::Result<void> read(uint64_t offset, std::span<std::byte> to) override {
    if (offset + to.size() > bytes_.size()) std::abort();  // It was told the size.
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return {};
  }
  weir::Result<void> write(uint64_t offset, std::span<const std::byte> from) override {
    if (bytes_.size() < offset + from.size()) bytes_.resize(offset + from.size());
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return {};
  }
  weir::Result<void> truncate(uint64_t) override { return {}; }
  weir::Result<void> sync() override { return {}; }
  weir::Result<uint64_t> size() const override { return bytes_.size(); }

 private:
  std::vector<std::byte>& bytes_;
};

// Heads of 64 bytes each, which the fuzzer gives, each followed by a payload of its claimed size.
void segment(std::span<const std::byte> data) {
  constexpr size_t kFields = 64, kCrcAt = kBlockBytes - 4;
  std::vector<std::byte> bytes;
  Bytes file(bytes);
  if (!write_segment_head(file, "fuzz", kShape)) std::abort();
  while (!data.empty() && bytes.size() < (1 << 20)) {
    const auto fields = data.first(std::min(data.size(), kFields));
    data = data.subspan(fields.size());
    std::vector<std::byte> block(kBlockBytes);
    std::memcpy(block.data(), fields.data(), fields.size());
    store(block.data() + kCrcAt, weir::crc32c(std::span(block).first(kCrcAt)));
    bytes.insert(bytes.end(), block.begin(), block.end());
    bytes.resize(bytes.size() + kBlockBytes);
  }
  const auto contents = scan_segment(file, "fuzz", kShape);
  if (!contents) std::abort();  // Its own head is right.
  check(*contents, bytes.size());
}

void sidecar(std::span<const std::byte> data) {
  constexpr size_t kHead = 24, kCrcAt = 20, kFileBytes = 1 << 20;
  std::string bytes(reinterpret_cast<const char*>(data.data()), data.size());
  if (bytes.size() >= kHead)
    store(reinterpret_cast<std::byte*>(bytes.data()) + kCrcAt, weir::crc32c(data.subspan(kHead)));
  const auto contents = read_sidecar(bytes, kFileBytes, kShape);
  if (contents) check(*contents, kFileBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  data[0] % 2 == 0 ? segment(rest) : sidecar(rest);
  return 0;
}
