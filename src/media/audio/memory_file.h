// MemoryFile: bytes and a place in them, which may lie beyond them as in files. What libraries read
// through their callbacks.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

namespace weir::media {

struct MemoryFile {
  std::string_view bytes{};
  size_t at = 0;

  // -1 for a place before the bytes, or too far after them for any use.
  int64_t seek(int64_t offset, int from) {
    int64_t begin = 0;
    if (from == SEEK_CUR) begin = static_cast<int64_t>(at);
    if (from == SEEK_END) begin = static_cast<int64_t>(bytes.size());
    if (offset < -begin || offset > std::numeric_limits<int32_t>::max() - begin) return -1;
    at = static_cast<size_t>(begin + offset);
    return begin + offset;
  }

  // How many there were.
  int64_t read(void* to, int64_t count) {
    if (count <= 0 || at >= bytes.size()) return 0;
    const std::string_view part = bytes.substr(at, static_cast<size_t>(count));
    std::memcpy(to, part.data(), part.size());
    at += part.size();
    return static_cast<int64_t>(part.size());
  }
};

}  // namespace weir::media
