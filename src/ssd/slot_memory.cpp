#include "ssd/slot_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace weir::ssd {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// No slot crosses a chunk, which is the largest piece that the kernel registers or backs at once.
constexpr uint64_t kChunkBytes = 1024 * kMiB;
// Slots whose memory is there before the first token.
constexpr uint64_t kFaultedFirst = 64 * kMiB;
constexpr uint64_t kFaultStep = 2 * kMiB;
// How long the own thread sleeps where no more is allowed now.
constexpr auto kWaitStep = std::chrono::milliseconds(100);

// Takes memory from the kernel that no slot uses yet.
void fault(std::byte* memory, uint64_t bytes) {
  if (populate(memory, bytes)) return;
  for (uint64_t at = 0; at < bytes; at += kBlockBytes)
    *const_cast<volatile std::byte*>(memory + at) = std::byte{0};
}

}  // namespace

Result<std::unique_ptr<SlotMemory>> SlotMemory::create(const ExpertCatalogue& catalogue,
                                                       const StorePlan& plan) {
  std::unique_ptr<SlotMemory> memory(new SlotMemory(catalogue, plan));
  WEIR_TRY(memory->allocate(plan.staging));
  memory->faulter_ = std::thread([&m = *memory] { m.fault_in(); });
  // The first token needs some.
  for (const SlotClass& cls : memory->classes_)
    while (cls.usable.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  return memory;
}

SlotMemory::SlotMemory(const ExpertCatalogue& catalogue, const StorePlan& plan)
    : classes_(plan.slots_of_class.size()), staging_bytes_(catalogue.staging_bytes()) {
  CHECK(std::ssize(plan.slots_of_class) == catalogue.classes());
  int32_t begin = 0;
  for (size_t c = 0; c < classes_.size(); ++c) {
    classes_[c].begin = begin;
    classes_[c].count = plan.slots_of_class[c];
    classes_[c].slot_bytes = catalogue.slot_bytes(static_cast<int32_t>(c));
    begin += classes_[c].count;
  }
  slots_.reserve(static_cast<size_t>(begin));
}

SlotMemory::~SlotMemory() {
  stopping_.store(true, std::memory_order_relaxed);
  if (faulter_.joinable()) faulter_.join();
}

Result<void> SlotMemory::allocate(int32_t staging) {
  for (const SlotClass& cls : classes_) {
    const uint64_t bytes = cls.slot_bytes;
    const uint64_t per_chunk = std::max<uint64_t>(kChunkBytes / bytes, 1);
    auto left = static_cast<uint64_t>(cls.count);
    while (left > 0) {
      const uint64_t count = std::min(left, per_chunk);
      WEIR_ASSIGN(HugeBuffer chunk, HugeBuffer::allocate(count * bytes));
      for (uint64_t i = 0; i < count; ++i) slots_.push_back(chunk.data() + i * bytes);
      chunks_.push_back(std::move(chunk));
      left -= count;
    }
  }
  if (staging == 0) return {};
  WEIR_ASSIGN(staging_memory_,
              HugeBuffer::allocate(staging_bytes_ * static_cast<uint64_t>(staging)));
  return {};
}

void SlotMemory::fault_in() {
  pthread_setname_np(pthread_self(), "weir-memory");
  if (staging_memory_.bytes() > 0) fault(staging_memory_.data(), staging_memory_.bytes());
  uint64_t total = 0;
  bool lowered = false;
  for (bool more = true; more && !stopping_.load(std::memory_order_relaxed);) {
    more = false;
    const uint64_t before = total;
    for (SlotClass& cls : classes_) more = fault_some(cls, &total) || more;
    if (more && total == before) std::this_thread::sleep_for(kWaitStep);  // No more is allowed now.
    // What comes after the first is out of the way of what computes.
    if (total > kFaultedFirst && !std::exchange(lowered, true))
      (void)::setpriority(PRIO_PROCESS, 0, 10);
  }
}

// A step of a class; false: it has all of its memory. Classes begin with what the first token
// needs, whatever is in a step.
bool SlotMemory::fault_some(SlotClass& cls, uint64_t* total) {
  int32_t done = cls.usable.load(std::memory_order_relaxed);
  if (done == cls.count) return false;
  const auto step = static_cast<int32_t>(std::max<uint64_t>(kFaultStep / cls.slot_bytes, 1));
  const int32_t least = std::min(kSlotsMin, cls.count);
  const int32_t end = std::min(std::max(done + step, least), allowed(cls));
  for (; done < end; ++done) {
    fault(slot(cls.begin + done), cls.slot_bytes);
    *total += cls.slot_bytes;
  }
  cls.usable.store(done, std::memory_order_release);
  return true;
}

int32_t SlotMemory::allowed(const SlotClass& cls) const {
  const int64_t percent = std::clamp(allowed_.load(std::memory_order_relaxed), 0, 100);
  return std::max(std::min(cls.count, kSlotsMin), static_cast<int32_t>(cls.count * percent / 100));
}

void SlotMemory::update(ExpertCache& cache) {
  for (size_t c = 0; c < classes_.size(); ++c) {
    const auto cls = static_cast<int32_t>(c);
    cache.set_usable(cls, classes_[c].usable.load(std::memory_order_acquire));
    const int32_t more = allowed(classes_[c]) - cache.usable(cls);
    if (more > 0) {
      // The kernel gives their memory when they are read into.
      slots_shed_ -= static_cast<int64_t>(cache.grow(cls, more).size());
    } else if (more < 0) {
      const std::span<const int32_t> shed = cache.shrink(cls, -more);
      slots_shed_ += static_cast<int64_t>(shed.size());
      for (const int32_t index : shed)  // Slots are whole pages.
        (void)::madvise(slot(index), classes_[c].slot_bytes, MADV_DONTNEED);
    }
  }
}

}  // namespace weir::ssd
