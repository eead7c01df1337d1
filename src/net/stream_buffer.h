// StreamBuffer collects what a stream writes next. It keeps room for the framing of a chunk before
// the bytes and adds the rest after them, so that a chunk is one piece of memory and one write.
// One buffer serves any number of streams that are written one after the other.
//
// Threads: its owner's.
//
// Invariants:
// (1) bytes_ begins with kRoom bytes that belong to the framing.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace weir::net {

class StreamBuffer {
 public:
  StreamBuffer() { clear(); }

  // To append to; what it holds already stays.
  std::string& text() { return bytes_; }

  size_t size() const { return bytes_.size() - kRoom; }
  bool empty() const { return size() == 0; }
  std::string_view view() const { return std::string_view(bytes_).substr(kRoom); }
  void clear() { bytes_.assign(kRoom, ' '); }

  // The bytes as a chunk of HTTP/1.1; nothing may be appended after it until clear().
  // REQUIRES: not empty, which would be the last chunk.
  std::string_view as_chunk() {
    char head[kRoom];
    char* end = std::to_chars(head, head + sizeof head, size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    const auto length = static_cast<size_t>(end - head);
    bytes_.replace(kRoom - length, length, head, length);
    bytes_ += "\r\n";
    return std::string_view(bytes_).substr(kRoom - length);
  }

 private:
  static constexpr size_t kRoom = 16 + 2;  // The digits of any size, and the line's end.

  std::string bytes_;
};

}  // namespace weir::net
