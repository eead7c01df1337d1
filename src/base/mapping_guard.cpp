#include "base/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace weir {

namespace {

struct Place {
  std::atomic<bool> taken{false};
  std::atomic<bool> lost{false};
  std::atomic<uintptr_t> begin{0};  // 0: guards nothing. Written last, and first to go.
  std::atomic<uintptr_t> end{0};
};

// A handler of signals sees nothing but globals.
std::array<Place, MappingGuard::kMappingsMax> places;
std::atomic<bool> some_lost{false};
uintptr_t page_bytes = 4096;
struct sigaction before {};  // What handled SIGBUS before.

static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

Place* place_of(uintptr_t address) {
  for (Place& place : places) {
    const uintptr_t begin = place.begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < place.end.load(std::memory_order_relaxed))
      return &place;
  }
  return nullptr;
}

// All that follows a page that is gone is most likely gone too, and worthless in any case: one
// mapping in place of a signal for each page. Another thread may be doing the same.
bool fill_with_zeros(Place& place, uintptr_t address) {
  const uintptr_t page = address / page_bytes * page_bytes;
  const uintptr_t end = place.end.load(std::memory_order_relaxed);
  place.lost.store(true, std::memory_order_release);
  some_lost.store(true, std::memory_order_release);
  // A system call and nothing else, so it may be made here.
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool from_kernel = info->si_code > 0;  // Else si_addr is none.
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Place* place = from_kernel ? place_of(address) : nullptr;
  if (place == nullptr || !fill_with_zeros(*place, address)) {
    // A fault happens again by itself; a signal that a process sent is sent once more.
    (void)::sigaction(signal, &before, nullptr);
    if (!from_kernel) (void)::raise(signal);
  }
  errno = error;
}

}  // namespace

void MappingGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    (void)::sigemptyset(&action.sa_mask);
    (void)::sigaction(SIGBUS, &action, &before);
  });
}

MappingGuard::MappingGuard(std::span<const std::byte> mapping) {
  const auto begin = reinterpret_cast<uintptr_t>(mapping.data());
  for (int i = 0; i < kMappingsMax; ++i) {
    Place& place = places[static_cast<size_t>(i)];
    if (place.taken.exchange(true, std::memory_order_acquire)) continue;
    place.lost.store(false, std::memory_order_relaxed);
    place.end.store(begin + mapping.size(), std::memory_order_relaxed);
    place.begin.store(begin, std::memory_order_release);
    place_ = i;
    return;
  }
}

MappingGuard::~MappingGuard() {
  if (place_ < 0) return;
  Place& place = places[static_cast<size_t>(place_)];
  place.begin.store(0, std::memory_order_release);
  place.taken.store(false, std::memory_order_release);
}

bool MappingGuard::lost() const {
  return place_ >= 0 && places[static_cast<size_t>(place_)].lost.load(std::memory_order_acquire);
}

bool MappingGuard::any_lost() { return some_lost.load(std::memory_order_relaxed); }

}  // namespace weir
