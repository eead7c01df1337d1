// Real files for the tests of reads, with bytes that tell their place.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "ssd/disk.h"

namespace weir::ssd {

// The 8 bytes at `offset` (a multiple of 8) of the file with this seed.
inline uint64_t word_at(uint64_t seed, uint64_t offset) {
  uint64_t x = (offset / 8 + 1) * 0x9e3779b97f4a7c15 + seed;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 29);
}

inline void fill_words(uint64_t seed, uint64_t offset, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = word_at(seed, offset + i);
    std::memcpy(out.data() + i, &word, std::min<size_t>(8, out.size() - i));
  }
}

inline bool has_words(uint64_t seed, uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<std::byte> expected(bytes.size());
  fill_words(seed, offset, expected);
  return std::memcmp(expected.data(), bytes.data(), bytes.size()) == 0;
}

// A folder that goes with the test. In the build folder: /tmp is often memory.
class TempFolder {
 public:
  TempFolder() {
    std::string name = std::string(WEIR_BUILD_DIR) + "/ssd_test_XXXXXX";
    if (::mkdtemp(name.data())) path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  std::string write(const std::string& name, uint64_t seed, uint64_t bytes) const {
    std::vector<std::byte> words(bytes);
    fill_words(seed, 0, words);
    const std::string file = path_ + "/" + name;
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(bytes));
    return file;
  }

  // Whether its file system reads with O_DIRECT.
  bool direct() const {
    const std::string file = write("direct_probe", 1, kBlockBytes);
    const int fd = ::open(file.c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0) return false;
    alignas(kBlockBytes) std::byte block[kBlockBytes];
    const ssize_t got = ::pread(fd, block, kBlockBytes, 0);
    ::close(fd);
    return got == static_cast<ssize_t>(kBlockBytes);
  }

 private:
  std::string path_;
};

// Memory for reads: aligned, in 2 MiB pages.
class ReadMemory {
 public:
  explicit ReadMemory(size_t bytes) : buffer_(std::move(HugeBuffer::allocate(bytes).value())) {}
  std::byte* at(size_t offset) { return buffer_.data() + offset; }
  std::span<std::byte> span(size_t offset, size_t bytes) { return {at(offset), bytes}; }

 private:
  HugeBuffer buffer_;
};

}  // namespace weir::ssd
