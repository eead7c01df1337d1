// MpscRing: a bounded lock-free queue, many producers, one consumer. SpscRing: one of each.
//
// Both refuse when full rather than wait: the caller owns the policy (429, or try again).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"

namespace weir {

inline constexpr size_t kCacheLineBytes = 64;

// Vyukov's bounded queue: every cell carries the turn at which it may be written or read, so a
// producer claims a cell with one compare-and-swap and publishes with one store.
template <class T>
class MpscRing {
 public:
  // REQUIRES: capacity is a power of two.
  explicit MpscRing(size_t capacity)
      : mask_(capacity - 1), cells_(std::make_unique<Cell[]>(capacity)) {
    CHECK(std::has_single_bit(capacity));
    for (size_t i = 0; i < capacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  // Any thread. False when full; `value` is then untouched.
  [[nodiscard]] bool try_push(T&& value) {
    size_t position = tail_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[position & mask_];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          cell.value = std::move(value);
          cell.turn.store(position + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < position) {
        return false;
      } else {
        position = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  // The consumer only.
  std::optional<T> try_pop() {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return std::nullopt;
    std::optional<T> value(std::move(cell.value));
    cell.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return value;
  }

  size_t capacity() const { return mask_ + 1; }

 private:
  struct Cell {
    std::atomic<size_t> turn{0};
    T value{};
  };

  const size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(kCacheLineBytes) std::atomic<size_t> tail_{0};
  alignas(kCacheLineBytes) size_t head_ = 0;
};

template <class T>
class SpscRing {
 public:
  // REQUIRES: capacity is a power of two.
  explicit SpscRing(size_t capacity)
      : mask_(capacity - 1), cells_(std::make_unique<T[]>(capacity)) {
    CHECK(std::has_single_bit(capacity));
  }

  // The producer only.
  [[nodiscard]] bool try_push(T&& value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) > mask_) return false;
    cells_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // The consumer only.
  std::optional<T> try_pop() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> value(std::move(cells_[head & mask_]));
    head_.store(head + 1, std::memory_order_release);
    return value;
  }

 private:
  const size_t mask_;
  const std::unique_ptr<T[]> cells_;
  alignas(kCacheLineBytes) std::atomic<size_t> head_{0};
  alignas(kCacheLineBytes) std::atomic<size_t> tail_{0};
};

}  // namespace weir
