// ExpertBundle: weir-experts.bundle, a file that holds every expert as it lies in a slot of memory,
// in two contiguous parts, each with a checksum: one read a part, and nothing to unpack.
//
//   superblock (4 KiB)   what the file is, whose, how far it has been written; its own CRC last
//   index                per layer and expert: where it is, bytes and CRC32C of its parts
//   payload              layer by layer, experts in order, every part in whole blocks
//
// Numbers are little-endian. A file is not read until `complete`, which is written when all
// else is on the disk; until then `layers_done` says where a writer goes on.
//
// Threads: values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ssd/disk.h"
#include "ssd/expert_catalogue.h"

namespace weir::ssd {

// What a bundle was made from: a hash of the checkpoint and of how it is laid out.
using SourceHash = std::array<uint64_t, 2>;

std::string text_of(const SourceHash& hash);  // 32 hexadecimal digits.

struct BundleHead {
  SourceHash source{};
  uint32_t layers = 0;
  uint32_t experts = 0;  // Of a layer.
  uint32_t layers_done = 0;
  uint32_t index_crc = 0;  // Of the index of the layers done.
  uint64_t file_bytes = 0;
  bool complete = false;

  uint64_t count() const { return uint64_t{layers} * experts; }
  uint64_t index_bytes() const;  // In whole blocks.
  uint64_t payload_offset() const { return kBlockBytes + index_bytes(); }
};

struct ExpertBundle {
  BundleHead head;
  std::vector<PackedExpert> index;  // Of the layers done.

  // Superblock and index of a file of `file_bytes` bytes, which may hold anything. `bytes`: from
  // its beginning, as much as there is; all that is needed lies in the first head_bytes_max(). An
  // error says what is wrong, without the file's name. An unfinished bundle is no error.
  static Result<ExpertBundle> parse(std::span<const std::byte> bytes, uint64_t file_bytes);
  // Parses the beginning of a file; errors name it.
  static Result<ExpertBundle> open(const std::string& path);
};

// For the writer of a file.
std::array<std::byte, kBlockBytes> encode(const BundleHead& head);
std::vector<std::byte> encode(std::span<const PackedExpert> index);
// Where a bundle of this catalogue has its experts (without checksums), and its head, nothing done.
ExpertBundle plan_bundle(const ExpertCatalogue& catalogue, const SourceHash& source);

}  // namespace weir::ssd
