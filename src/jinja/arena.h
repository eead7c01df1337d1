// Arena: memory that is handed out piece by piece and given back all at once. Everything a template
// or a rendering creates lives in one, so values are plain pointers and cycles cost nothing.
//
// Threads: one owner at a time.
// Invariants: destructors are never run; only trivially destructible things may live here.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::jinja {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Never fails. A caller that lets untrusted input choose `bytes` checks used() before.
  void* allocate(size_t bytes) {
    bytes = (bytes + kAlign - 1) & ~(kAlign - 1);
    if (bytes > static_cast<size_t>(end_ - next_)) return allocate_slow(bytes);
    char* result = next_;
    next_ += bytes;
    return result;
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlign);
    return new (allocate(sizeof(T))) T{std::forward<Args>(args)...};
  }

  // Uninitialised elements.
  template <class T>
  T* make_array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlign);
    return static_cast<T*>(allocate(count * sizeof(T)));
  }

  template <class T>
  std::span<T> copy(const std::vector<T>& from) {
    T* to = make_array<T>(from.size());
    std::uninitialized_copy(from.begin(), from.end(), to);
    return {to, from.size()};
  }

  std::string_view copy(std::string_view text) {
    char* to = static_cast<char*>(allocate(text.size()));
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }

  // Bytes taken from the system, in whole chunks.
  size_t used() const { return used_; }

 private:
  // A typical rendering needs 30 to 100 KB: few chunks, and little waste for a short one.
  static constexpr size_t kChunkBytes = 32 << 10;
  static constexpr size_t kAlign = 8;

  void* allocate_slow(size_t bytes) {
    const bool own_chunk = bytes > kChunkBytes / 4;
    const size_t chunk_bytes = own_chunk ? bytes : kChunkBytes;
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk_bytes));
    used_ += chunk_bytes;
    char* chunk = chunks_.back().get();
    if (own_chunk) return chunk;
    next_ = chunk + bytes;
    end_ = chunk + chunk_bytes;
    return chunk;
  }

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  size_t used_ = 0;
};

}  // namespace weir::jinja
