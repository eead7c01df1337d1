#include "ssd/expert_bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/check.h"
#include "base/crc32c.h"

namespace weir::ssd {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'W', 'E', 'I', 'R', 'X', 'P', 'K', '1'};
constexpr uint32_t kVersion = 1;
// Raised when the form of a slot changes without changing its size: how kernels want words and
// scales, what lies after what.
constexpr uint32_t kSlotForm = 1;
// Kimi K2 has 60 layers of 384 experts; the index of so many takes 32 MiB.
constexpr uint64_t kExpertsMax = uint64_t{1} << 20;

// Offsets in the superblock.
constexpr size_t kVersionAt = 8, kFormAt = 12, kSourceAt = 16, kLayersAt = 32, kExpertsAt = 36,
                 kDoneAt = 40, kCompleteAt = 44, kIndexCrcAt = 48, kFileBytesAt = 56,
                 kCrcAt = kBlockBytes - 4;
// Of an index entry: offset, bytes of the parts, their checksums.
constexpr size_t kEntryBytes = 24;

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void store(std::span<std::byte> bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

tl::unexpected<Error> wrong(std::string what) { return fail(ErrorCode::kIo, std::move(what)); }

std::string number(uint64_t value) { return std::to_string(value); }

Result<BundleHead> parse_head(std::span<const std::byte> bytes, uint64_t file_bytes) {
  if (bytes.size() < kBlockBytes)
    return wrong("expected a superblock of " + number(kBlockBytes) + " bytes, found " +
                 number(bytes.size()));
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return wrong("expected a bundle of experts; this is another kind of file");
  if (const auto version = load<uint32_t>(bytes, kVersionAt); version != kVersion)
    return wrong("expected version " + number(kVersion) + ", found " + number(version));
  const uint32_t crc = crc32c(bytes.first(kCrcAt));
  if (crc != load<uint32_t>(bytes, kCrcAt)) return wrong("the superblock's checksum is wrong");
  if (const auto form = load<uint32_t>(bytes, kFormAt); form != kSlotForm)
    return wrong("expected experts in form " + number(kSlotForm) + ", found " + number(form));
  BundleHead head;
  head.source = load<SourceHash>(bytes, kSourceAt);
  head.layers = load<uint32_t>(bytes, kLayersAt);
  head.experts = load<uint32_t>(bytes, kExpertsAt);
  head.layers_done = load<uint32_t>(bytes, kDoneAt);
  head.complete = load<uint32_t>(bytes, kCompleteAt) == 1;
  head.index_crc = load<uint32_t>(bytes, kIndexCrcAt);
  head.file_bytes = load<uint64_t>(bytes, kFileBytesAt);
  if (head.count() == 0 || head.count() > kExpertsMax)
    return wrong("expected 1 to " + number(kExpertsMax) + " experts, found " + number(head.layers) +
                 " layers of " + number(head.experts));
  if (head.layers_done > head.layers || (head.complete && head.layers_done != head.layers))
    return wrong("expected " + number(head.layers) + " layers, found " + number(head.layers_done) +
                 " done");
  if (head.file_bytes != file_bytes || file_bytes < head.payload_offset())
    return wrong("expected a file of " + number(head.file_bytes) + " bytes, found " +
                 number(file_bytes));
  return head;
}

Result<PackedExpert> parse_entry(std::span<const std::byte> bytes, const BundleHead& head) {
  PackedExpert e;
  e.offset = load<uint64_t>(bytes, 0);
  e.bytes = load<std::array<uint32_t, kParts>>(bytes, 8);
  e.crc = load<std::array<uint32_t, kParts>>(bytes, 16);
  const uint64_t size = uint64_t{e.bytes[0]} + e.bytes[1];
  const bool sized = std::ranges::all_of(e.bytes, [](uint32_t part) {
    return part > 0 && part <= kReadBytesMax && part % kBlockBytes == 0;
  });
  if (!sized || e.offset % kBlockBytes != 0 || e.offset < head.payload_offset() ||
      e.offset > head.file_bytes || size > head.file_bytes - e.offset)
    return wrong("expected whole blocks within the payload, found " + number(e.bytes[0]) + " and " +
                 number(e.bytes[1]) + " bytes at " + number(e.offset));
  return e;
}

std::string reason(int error) { return std::generic_category().message(error); }

// `bytes` from `offset`, or fewer at the file's end.
Result<std::vector<std::byte>> read_at(int fd, uint64_t offset, size_t bytes) {
  std::vector<std::byte> out(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd, out.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wrong("cannot be read: " + reason(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return out;
}

Result<ExpertBundle> open_fd(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return wrong("cannot be read: " + reason(errno));
  if (!S_ISREG(info.st_mode)) return wrong("expected a regular file, found another kind");
  const auto size = static_cast<uint64_t>(info.st_size);
  WEIR_ASSIGN(std::vector<std::byte> bytes, read_at(fd, 0, kBlockBytes));
  WEIR_ASSIGN(const BundleHead head, parse_head(bytes, size));
  WEIR_ASSIGN(bytes, read_at(fd, 0, head.payload_offset()));
  return ExpertBundle::parse(bytes, size);
}

}  // namespace

std::string text_of(const SourceHash& hash) {
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash[1]),
                static_cast<unsigned long long>(hash[0]));
  return text;
}

uint64_t BundleHead::index_bytes() const {
  return (count() * kEntryBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

Result<ExpertBundle> ExpertBundle::parse(std::span<const std::byte> bytes, uint64_t file_bytes) {
  ExpertBundle bundle;
  WEIR_ASSIGN(bundle.head, parse_head(bytes, file_bytes));
  const BundleHead& head = bundle.head;
  const size_t done = size_t{head.layers_done} * head.experts;
  if (bytes.size() - kBlockBytes < done * kEntryBytes)
    return wrong("expected an index of " + number(done) + " experts; the file ends before");
  const auto index = bytes.subspan(kBlockBytes, done * kEntryBytes);
  if (crc32c(index) != head.index_crc) return wrong("the index's checksum is wrong");
  bundle.index.reserve(done);
  for (size_t i = 0; i < done; ++i) {
    WEIR_ASSIGN(const PackedExpert entry,
                parse_entry(index.subspan(i * kEntryBytes, kEntryBytes), head));
    bundle.index.push_back(entry);
  }
  return bundle;
}

Result<ExpertBundle> ExpertBundle::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(ErrorCode::kIo, path + ": cannot open: " + reason(errno));
  Result<ExpertBundle> bundle = open_fd(fd);
  ::close(fd);
  if (!bundle) return fail(ErrorCode::kIo, path + ": " + bundle.error().message);
  return bundle;
}

std::array<std::byte, kBlockBytes> encode(const BundleHead& head) {
  std::array<std::byte, kBlockBytes> out{};
  store(out, 0, kMagic);
  store(out, kVersionAt, kVersion);
  store(out, kFormAt, kSlotForm);
  store(out, kSourceAt, head.source);
  store(out, kLayersAt, head.layers);
  store(out, kExpertsAt, head.experts);
  store(out, kDoneAt, head.layers_done);
  store(out, kCompleteAt, uint32_t{head.complete});
  store(out, kIndexCrcAt, head.index_crc);
  store(out, kFileBytesAt, head.file_bytes);
  store(out, kCrcAt, crc32c(std::span<const std::byte>(out).first(kCrcAt)));
  return out;
}

std::vector<std::byte> encode(std::span<const PackedExpert> index) {
  std::vector<std::byte> out(index.size() * kEntryBytes);
  for (size_t i = 0; i < index.size(); ++i) {
    const auto entry = std::span(out).subspan(i * kEntryBytes, kEntryBytes);
    store(entry, 0, index[i].offset);
    store(entry, 8, index[i].bytes);
    store(entry, 16, index[i].crc);
  }
  return out;
}

ExpertBundle plan_bundle(const ExpertCatalogue& catalogue, const SourceHash& source) {
  ExpertBundle bundle;
  BundleHead& head = bundle.head;
  head.source = source;
  head.layers = static_cast<uint32_t>(catalogue.layers());
  head.experts = static_cast<uint32_t>(catalogue.experts());
  uint64_t at = head.payload_offset();
  for (int32_t l = 0; l < catalogue.layers(); ++l) {
    const ExpertCatalogue::Layer& layer = catalogue.layer(l);
    PackedExpert entry;
    for (size_t part = 0; part < kParts; ++part) {
      CHECK(layer.part_bytes[part] <= kReadBytesMax);
      entry.bytes[part] = static_cast<uint32_t>(layer.part_bytes[part]);
    }
    for (int32_t e = 0; e < catalogue.experts(); ++e) {
      entry.offset = at;
      bundle.index.push_back(entry);
      at += uint64_t{entry.bytes[0]} + entry.bytes[1];
    }
  }
  head.file_bytes = at;
  return bundle;
}

}  // namespace weir::ssd
