// MemoryBudget and MemoryLease: how much memory open requests may hold together. A lease gives its
// bytes back when it goes.
//
// Threads: take() from any; a lease belongs to whoever holds it. The budget outlives its leases.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace weir::api {

class MemoryBudget;

class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(MemoryLease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryLease& operator=(MemoryLease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  inline ~MemoryLease();

 private:
  friend class MemoryBudget;
  MemoryLease(MemoryBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  std::optional<MemoryLease> take(size_t bytes) {
    size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_max_ - used) return std::nullopt;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return MemoryLease(this, bytes);
  }

  size_t used() const { return used_.load(std::memory_order_relaxed); }
  size_t bytes_max() const { return bytes_max_; }

 private:
  friend class MemoryLease;

  const size_t bytes_max_;
  std::atomic<size_t> used_{0};
};

MemoryLease::~MemoryLease() {
  if (budget_) budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
}

}  // namespace weir::api
