// MemoryBudget, StoreBudget and MemoryLease: how much memory open requests, and what is stored, may
// hold together. A lease gives its bytes back when it goes.
//
// Threads: take() from any; a lease belongs to its holder. A budget outlives its leases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/fair_budget.h"

namespace weir::api {

// What leases are given back to.
class Lender {
 public:
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

 protected:
  Lender() = default;
  ~Lender() = default;

 private:
  friend class MemoryLease;
  virtual void give_back(uint64_t caller, size_t bytes) = 0;
};

class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(Lender& lender, uint64_t caller, size_t bytes)
      : lender_(&lender), caller_(caller), bytes_(bytes) {}
  MemoryLease(MemoryLease&& other) noexcept
      : lender_(std::exchange(other.lender_, nullptr)),
        caller_(other.caller_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryLease& operator=(MemoryLease&& other) noexcept {
    std::swap(lender_, other.lender_);
    std::swap(caller_, other.caller_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryLease() {
    if (lender_) lender_->give_back(caller_, bytes_);
  }

  size_t bytes() const { return bytes_; }
  // Some of its bytes, for something that ends at another time. REQUIRES: it has so many.
  MemoryLease part(size_t bytes) {
    bytes_ -= bytes;
    return lender_ ? MemoryLease(*lender_, caller_, bytes) : MemoryLease();
  }

 private:
  friend class MemoryBudget;

  Lender* lender_ = nullptr;
  uint64_t caller_ = 0;
  size_t bytes_ = 0;
};

// Memory of requests, shared fairly by callers (Exchange::caller()). A request takes at once what
// it will need, and parts of that go to what it is made of.
class MemoryBudget final : private Lender {
 public:
  explicit MemoryBudget(size_t bytes_max) : budget_(bytes_max, kFactor), bytes_max_(bytes_max) {}

  std::optional<MemoryLease> take(uint64_t caller, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!budget_.take(caller, bytes)) return std::nullopt;
    return MemoryLease(*this, caller, bytes);
  }

  // Adds what turns out to be needed, within the caller's share. REQUIRES: the lease is this
  // budget's.
  bool grow(MemoryLease& lease, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!budget_.take(lease.caller_, bytes)) return false;
    lease.bytes_ += bytes;
    return true;
  }
  // Adds in the same way, of whatever is free.
  bool extend(MemoryLease& lease, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!budget_.take_more(lease.caller_, bytes)) return false;
    lease.bytes_ += bytes;
    return true;
  }

  size_t used() const {
    const std::lock_guard lock(mutex_);
    return budget_.used();
  }
  size_t bytes_max() const { return bytes_max_; }
  // The most that one request ever gets, and those of one caller together.
  size_t most_of_one() const { return FairBudget::most_of_one(bytes_max_); }
  size_t share_of_one() const { return bytes_max_ / (kFactor + 1) * kFactor; }

 private:
  // Most requests are small beside the budget: a fifth of it is many, and one caller that asks for
  // much gets nearly all.
  static constexpr size_t kFactor = 4;

  void give_back(uint64_t caller, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    budget_.give_back(caller, bytes);
  }

  mutable std::mutex mutex_;
  FairBudget budget_;
  const size_t bytes_max_;
};

// Memory of what is stored: all of it to each caller, for what is stored can be dropped. It knows
// what each holds, so that the one that has most can be the one that loses some.
class StoreBudget final : private Lender {
 public:
  explicit StoreBudget(size_t bytes_max) : budget_(bytes_max) {}

  std::optional<MemoryLease> take(uint64_t caller, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!budget_.take_more(caller, bytes)) return std::nullopt;
    return MemoryLease(*this, caller, bytes);
  }

  size_t held_by(uint64_t caller) const {
    const std::lock_guard lock(mutex_);
    return budget_.held_by(caller);
  }
  size_t used() const {
    const std::lock_guard lock(mutex_);
    return budget_.used();
  }
  size_t bytes_max() const { return budget_.bytes_max(); }

 private:
  void give_back(uint64_t caller, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    budget_.give_back(caller, bytes);
  }

  mutable std::mutex mutex_;
  FairBudget budget_;
};

}  // namespace weir::api
