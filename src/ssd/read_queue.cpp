#include "ssd/read_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace weir::ssd {

namespace {

using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;

constexpr int kPlaceBits = std::countr_zero(static_cast<uint32_t>(ReadQueue::kReadsMax));
constexpr uint32_t kGenerationMask = (uint32_t{1} << (32 - kPlaceBits)) - 1;
static_assert(std::has_single_bit(static_cast<uint32_t>(ReadQueue::kReadsMax)));

// A device that cannot read a sector says so after retries of its own: two more attempts, one at
// once and one after what a path's failover takes.
constexpr std::array<Nanoseconds, 2> kErrorPauses = {1ms, 10ms};
constexpr uint8_t kShortsMax = 3;
// The kernel is out of memory for the request (EAGAIN, ENOMEM): once at once, then after 1, 2, 4,
// ... and at most 64 ms; 16 attempts are 0.6 s.
constexpr uint8_t kShortagesMax = 16;
constexpr int kShortagePauseBitsMax = 6;

constexpr Nanoseconds kStallTime = 5s;
constexpr Nanoseconds kStuckTime = 30s;
constexpr Nanoseconds kWatchInterval = 1s;
constexpr Nanoseconds kFilesInterval = 10s;  // All files are looked at once in it.
// A disk that has failed fails hundreds of reads a second: after a line about one they are counted
// for so long.
constexpr Nanoseconds kFailuresInterval = 10s;

ReadError kind_of(int32_t error) {
  switch (error) {
    case EIO:
      return ReadError::kIo;
    case ENOMEM:
      return ReadError::kMemory;
    case EAGAIN:
    case EINTR:
      return ReadError::kAgain;
    case EINVAL:
    case EOPNOTSUPP:
      return ReadError::kInvalid;
    default:
      return ReadError::kOther;
  }
}

uint64_t nanoseconds(Nanoseconds time) { return static_cast<uint64_t>(time.count()); }

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string text_of(int32_t error) { return std::generic_category().message(error); }

std::string sizes_of(const FileState& file) {
  return "a file of " + std::to_string(file.bytes) + " bytes (" +
         std::to_string(file.opened_bytes) + " when it was opened)";
}

constexpr const char* kWrittenTo = " that was written to since; a restart reads it anew";

}  // namespace

ReadQueue::ReadQueue(Disk& disk, const QueueLimits& limits)
    : disk_(disk), limits_(limits), notices_(64) {
  reads_.resize(kReadsMax);
  landed_.reserve(kReadsMax);
  failures_.reserve(kReadsMax);
  file_changes_.resize(kFilesMax);
  good_looks_.resize(kFilesMax);
  read_since_look_.resize(kFilesMax);
  files_read_.reserve(kFilesMax);
  for (int32_t place = 0; place < kReadsMax; ++place) push_back(free_, place);
  const Nanoseconds now = disk_.now();
  progress_ = now;
  next_watch_ = now + kWatchInterval;
  next_file_ = now + kFilesInterval;
}

ReadQueue::~ReadQueue() = default;

// --- What the owner asks for.

std::optional<ReadQueue::ReadId> ReadQueue::add(const Extent& extent, ReadClass cls,
                                                uint64_t owner) {
  CHECK(extent.offset % kBlockBytes == 0 && extent.bytes % kBlockBytes == 0);
  CHECK(reinterpret_cast<uintptr_t>(extent.to) % kBlockBytes == 0 && extent.to != nullptr);
  CHECK(extent.bytes > 0 && extent.bytes <= kReadBytesMax);
  CHECK(extent.needed > 0 && extent.needed <= extent.bytes);
  CHECK(extent.file >= 0 && extent.file < kFilesMax);
  const int32_t place = free_.head;
  if (place < 0) return std::nullopt;
  remove(free_, place);
  Read& read = at(place);
  const uint32_t generation = read.generation;
  read = Read{};
  read.generation = generation;
  read.extent = extent;
  read.owner = owner;
  read.cls = cls;
  read.state = State::kQueued;
  read.asked = disk_.now();
  push_back(lists_[index(cls)], place);
  ++queued_[index(cls)];
  files_ = std::max(files_, extent.file + 1);
  return id_of(place);
}

bool ReadQueue::waits(ReadId id) const {
  const Read* read = find(id);
  return read && (read->state == State::kQueued || read->state == State::kPaused);
}

bool ReadQueue::drop(ReadId id) {
  if (!waits(id)) return false;
  Read* read = find(id);
  remove(list_of(*read), place_of(*read));
  --queued_[index(read->cls)];
  stats_.dropped.add();
  free(*read);
  return true;
}

void ReadQueue::promote(ReadId id, ReadClass cls) {
  Read* read = find(id);
  if (!read || read->state == State::kStuck || cls >= read->cls) return;
  const size_t from = index(read->cls), to = index(cls);
  if (read->state == State::kInKernel) {
    --class_reads_[from];
    ++class_reads_[to];
    const uint64_t bytes = read->extent.bytes - read->done;
    class_bytes_[from] -= bytes;
    class_bytes_[to] += bytes;
  } else {
    --queued_[from];
    ++queued_[to];
    if (read->state == State::kQueued) {
      remove(lists_[from], place_of(*read));
      push_back(lists_[to], place_of(*read));
    }
  }
  read->cls = cls;
  read->asked = disk_.now();
  stats_.promoted.add();
}

void ReadQueue::submit() {
  Nanoseconds now{0};
  bool sent = false;
  for (List& list : lists_) {
    while (list.head >= 0) {
      Read& read = at(list.head);
      if (!has_room(read)) break;
      if (!sent) now = disk_.now();
      if (!send(read, now)) break;
      sent = true;
    }
    if (list.head >= 0) break;  // Whatever has less precedence waits until this class is gone.
  }
  if (sent) disk_.flush();
  stats_.in_flight_bytes.set(
      static_cast<double>(std::accumulate(class_bytes_.begin(), class_bytes_.end(), uint64_t{0})));
}

std::span<const Landed> ReadQueue::poll() {
  landed_.clear();
  failures_.clear();
  reap();
  look_around(disk_.now());
  submit();
  return landed_;
}

std::span<const Landed> ReadQueue::wait(std::chrono::nanoseconds timeout) {
  poll();
  const Nanoseconds begin = disk_.now();
  Nanoseconds now = begin;
  std::array<DiskDone, 64> done;
  while (landed_.empty() && now - begin < timeout) {
    const bool outstanding =
        in_flight() > 0 || std::ranges::any_of(queued_, [](int32_t count) { return count > 0; });
    if (!outstanding) break;
    const Nanoseconds slice = std::min(timeout - (now - begin), next_event(now) - now);
    const int32_t count = disk_.wait(done, std::max(slice, Nanoseconds(1us)));
    now = disk_.now();
    for (int32_t i = 0; i < count; ++i) complete(done[static_cast<size_t>(i)], now);
    look_around(now);
    submit();
  }
  stats_.wait_ns.add(nanoseconds(now - begin));
  return landed_;
}

FileChange ReadQueue::file_change(int32_t file) const {
  CHECK(file >= 0 && file < kFilesMax);
  return file_changes_[static_cast<size_t>(file)];
}

// --- To the kernel and back.

bool ReadQueue::has_room(const Read& read) const {
  if (in_flight() >= limits_.depth) return false;
  const uint64_t bytes = read.extent.bytes - read.done;
  const auto fits = [&](uint64_t in_flight_bytes, uint64_t window) {
    return in_flight_bytes == 0 || in_flight_bytes + bytes <= window;
  };
  const uint64_t demand = class_bytes_[index(ReadClass::kDemand)];
  const uint64_t prefill = class_bytes_[index(ReadClass::kPrefill)];
  switch (read.cls) {
    case ReadClass::kDemand:
      return fits(demand, limits_.demand_window_bytes);
    case ReadClass::kPrefill:
      return fits(demand + prefill, limits_.demand_window_bytes);
    case ReadClass::kSpeculative:
      return !stalled_ && !demand_outstanding() && queued(ReadClass::kPrefill) == 0 &&
             prefill == 0 &&
             class_reads_[index(ReadClass::kSpeculative)] < limits_.speculative_reads &&
             fits(class_bytes_[index(ReadClass::kSpeculative)], limits_.speculative_window_bytes);
  }
  CHECK(false);
}

bool ReadQueue::send(Read& read, Nanoseconds now) {
  const Extent& e = read.extent;
  const uint32_t bytes = e.bytes - read.done;
  if (!disk_.submit({e.file, bytes, e.offset + read.done, e.to + read.done, id_of(place_of(read))}))
    return false;
  const size_t cls = index(read.cls);
  remove(lists_[cls], place_of(read));
  --queued_[cls];
  read.state = State::kInKernel;
  read.submitted = now;
  if (active_++ == 0) {
    busy_since_ = now;
    if (!stalled_) progress_ = now;
  }
  ++class_reads_[cls];
  class_bytes_[cls] += bytes;
  return true;
}

void ReadQueue::leave_kernel(Read& read) {
  const size_t cls = index(read.cls);
  --class_reads_[cls];
  class_bytes_[cls] -= read.extent.bytes - read.done;
  if (--active_ == 0) stats_.busy_ns.add(nanoseconds(disk_.now() - busy_since_));
}

void ReadQueue::reap() {
  if (in_flight() == 0) return;
  std::array<DiskDone, 64> done;
  int32_t count;
  do {
    count = disk_.poll(done);
    const Nanoseconds now = count > 0 ? disk_.now() : Nanoseconds(0);
    for (int32_t i = 0; i < count; ++i) complete(done[static_cast<size_t>(i)], now);
  } while (count == static_cast<int32_t>(done.size()));
}

void ReadQueue::complete(const DiskDone& done, Nanoseconds now) {
  Read* read = find(static_cast<ReadId>(done.tag));
  CHECK(read && (read->state == State::kInKernel || read->state == State::kStuck));
  if (stalled_)
    notice("ssd reads complete again after_s=" + std::to_string(seconds(now - progress_)));
  stalled_ = false;
  progress_ = now;
  stats_.device_latency.observe(seconds(now - read->submitted));
  if (read->state == State::kStuck) return take_late(*read, done.result);
  leave_kernel(*read);
  if (done.result < 0) return take_error(*read, -done.result, now);
  CHECK(static_cast<uint32_t>(done.result) <= read->extent.bytes - read->done);
  take_bytes(*read, static_cast<uint32_t>(done.result), now);
}

void ReadQueue::take_bytes(Read& read, uint32_t bytes, Nanoseconds now) {
  const Extent& e = read.extent;
  if (read.done + bytes >= e.needed) return take_whole(read, now);
  if (e.offset + e.needed > disk_.file_state(e.file).bytes) {
    look_at_file(e.file);
    stats_.errors[static_cast<size_t>(ReadError::kEnd)].add();
    return land_failure(read, 0, sizes_of(disk_.file_state(e.file)));
  }
  if (read.shorts == kShortsMax) {
    return land_failure(read, EIO,
                        std::to_string(read.done + bytes) + " bytes, after " +
                            std::to_string(kShortsMax + 1) + " short reads");
  }
  ++read.shorts;
  stats_.short_reads.add();
  read.done += bytes / kBlockBytes * kBlockBytes;  // What is left begins at a block.
  again(read, 0ns, now);
}

// All bytes are there. Of a file that was changed they are good only by a checksum, or if it is
// again what it was, byte for byte as far as its time tells.
void ReadQueue::take_whole(Read& read, Nanoseconds now) {
  const int32_t file = read.extent.file;
  if (read.extent.verified || !changed_in_place(file)) return land(read, now);
  look_at_file(file);
  if (!changed_in_place(file)) return land(read, now);
  stats_.errors[static_cast<size_t>(ReadError::kChanged)].add();
  land_failure(read, ESTALE, sizes_of(disk_.file_state(file)) + kWrittenTo);
}

void ReadQueue::take_error(Read& read, int32_t error, Nanoseconds now) {
  const ReadError kind = kind_of(error);
  stats_.errors[static_cast<size_t>(kind)].add();
  look_at_file(read.extent.file);
  if (kind == ReadError::kInvalid) {
    // Reads that were in the kernel when the first of them was refused come back refused too.
    const bool left = disk_.leave_direct(read.extent.file);
    if (left) {
      notice("ssd O_DIRECT refused, reading through the page cache file=" +
             disk_.path(read.extent.file));
    }
    if (left || read.refusals == 0) {
      ++read.refusals;
      return again(read, 0ns, now);
    }
  } else if (kind == ReadError::kAgain || kind == ReadError::kMemory) {
    if (read.shortages < kShortagesMax) {
      const int bits = std::min<int>(read.shortages, kShortagePauseBitsMax + 1);
      ++read.shortages;
      return again(read, bits == 0 ? Nanoseconds(0) : Nanoseconds(1ms) * (1 << (bits - 1)), now);
    }
  } else if (read.errors < kErrorPauses.size()) {
    return again(read, kErrorPauses[read.errors++], now);
  }
  land_failure(read, error, text_of(error));
}

// A read that its owner has given up has come back: whatever came, its memory is free again.
void ReadQueue::take_late(Read& read, int32_t result) {
  --stuck_;
  if (result < 0) return land_failure(read, -result, text_of(-result));
  const uint32_t there = read.done + static_cast<uint32_t>(result);
  if (there < read.extent.needed)
    return land_failure(read, EIO, std::to_string(there) + " bytes, long after");
  take_whole(read, progress_);
}

// Another attempt at what is left, before all reads of its class, after a pause.
void ReadQueue::again(Read& read, Nanoseconds pause, Nanoseconds now) {
  stats_.retries.add();
  ++queued_[index(read.cls)];
  if (pause == 0ns) {
    read.state = State::kQueued;
    push_front(lists_[index(read.cls)], place_of(read));
  } else {
    read.state = State::kPaused;
    read.due = now + pause;
    push_back(paused_, place_of(read));
  }
}

// --- To the owner.

void ReadQueue::land(Read& read, Nanoseconds now) {
  const size_t cls = index(read.cls);
  stats_.reads[cls].add();
  stats_.bytes[cls].add(read.extent.bytes);
  stats_.latency[cls].observe(seconds(now - read.asked));
  note_read(read.extent.file);
  landed_.push_back({read.owner, nullptr, true});
  free(read);
}

void ReadQueue::land_failure(Read& read, int32_t error, const std::string& found, bool released) {
  const Extent& e = read.extent;
  CHECK(failures_.size() < static_cast<size_t>(kReadsMax));  // Others point into it.
  failures_.push_back({e.file, e.offset, e.bytes, error,
                       disk_.path(e.file) + ": expected " + std::to_string(e.needed) +
                           " bytes at offset " + std::to_string(e.offset) + ", found: " + found});
  notice_failure(read, failures_.back().message);
  stats_.failures.add();
  landed_.push_back({read.owner, &failures_.back(), released});
  if (released) free(read);
}

void ReadQueue::free(Read& read) {
  read.state = State::kFree;
  read.generation = (read.generation + 1) & kGenerationMask;
  if (read.generation == 0) read.generation = 1;  // No id is 0.
  push_back(free_, place_of(read));
}

// --- What happens by the clock.

void ReadQueue::look_around(Nanoseconds now) {
  if (paused_.head >= 0) resume_paused(now);
  if (now >= next_watch_) watch(now);
  if (files_ > 0 && now >= next_file_) {
    file_looked_at_ = (file_looked_at_ + 1) % files_;
    look_at_file(file_looked_at_);
    next_file_ = now + kFilesInterval / files_;
  }
}

void ReadQueue::resume_paused(Nanoseconds now) {
  for (int32_t place = paused_.head; place >= 0;) {
    Read& read = at(place);
    const int32_t next = read.next;
    if (read.due <= now) {
      remove(paused_, place);
      read.state = State::kQueued;
      push_front(lists_[index(read.cls)], place);
    }
    place = next;
  }
}

void ReadQueue::watch(Nanoseconds now) {
  next_watch_ = now + kWatchInterval;
  if (active_ > 0 && !stalled_ && now - progress_ >= kStallTime) {
    stalled_ = true;
    stats_.stalls.add();
    notice("ssd no read has completed for_s=" + std::to_string(seconds(now - progress_)) +
           " in_flight=" + std::to_string(active_));
  }
  give_up_old(now);
}

void ReadQueue::give_up_old(Nanoseconds now) {
  const auto waited = [](Nanoseconds time) {
    return "nothing for " + std::to_string(static_cast<int64_t>(seconds(time))) + " s";
  };
  for (Read& read : reads_) {
    if (read.state == State::kInKernel && now - read.submitted >= kStuckTime) {
      leave_kernel(read);
      read.state = State::kStuck;
      ++stuck_;
      stats_.errors[static_cast<size_t>(ReadError::kStuck)].add();
      land_failure(read, ETIMEDOUT, waited(now - read.submitted), false);
    }
  }
  if (!stalled_ || now - progress_ < kStuckTime) return;
  for (Read& read : reads_) {  // Those that never got to a disk that does not answer.
    const bool waiting = read.state == State::kQueued || read.state == State::kPaused;
    if (!waiting || now - read.asked < kStuckTime) continue;
    remove(list_of(read), place_of(read));
    --queued_[index(read.cls)];
    land_failure(read, ETIMEDOUT, waited(now - read.asked));
  }
}

void ReadQueue::note_read(int32_t file) {
  if (read_since_look_[static_cast<size_t>(file)]) return;
  read_since_look_[static_cast<size_t>(file)] = true;
  files_read_.push_back(file);
}

void ReadQueue::look_at_files_read() {
  for (const int32_t file : files_read_) {
    read_since_look_[static_cast<size_t>(file)] = false;
    look_at_file(file);
  }
  files_read_.clear();
}

void ReadQueue::look_at_file(int32_t file) {
  const FileState state = disk_.file_state(file);
  ++looks_;
  FileChange& known = file_changes_[static_cast<size_t>(file)];
  if (!weir::changed_in_place(state.change))
    good_looks_[static_cast<size_t>(file)] = looks_;
  else if (!weir::changed_in_place(known))
    found_changed_ = true;
  if (state.change == known) return;
  known = state.change;
  if (known == FileChange::kNone) return;
  stats_.file_changes.add();
  notice("ssd file changed since it was opened file=" + disk_.path(file) +
         " how=" + weir::name_of(known) + " bytes=" + std::to_string(state.bytes) +
         " opened_bytes=" + std::to_string(state.opened_bytes));
}

std::string ReadQueue::describe_change(int32_t file) const {
  return disk_.path(file) +
         ": expected the file that was opened, found: " + sizes_of(disk_.file_state(file)) +
         kWrittenTo;
}

void ReadQueue::notice(std::string line) {
  (void)notices_.try_push(std::move(line));  // Full: the log has enough lines of this.
}

void ReadQueue::notice_failure(const Read& read, const std::string& message) {
  const Nanoseconds now = disk_.now();
  const Nanoseconds due(failures_due_ns_.load(std::memory_order_relaxed));
  // What is not told yet comes first.
  if (now < due || failures_untold_.load(std::memory_order_relaxed) > 0) {
    failures_untold_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  failures_due_ns_.store((now + kFailuresInterval).count(), std::memory_order_relaxed);
  notice("ssd read failed class=" + std::string(name_of(read.cls)) + " " + message);
}

std::optional<std::string> ReadQueue::take_notice() {
  if (std::optional<std::string> line = notices_.try_pop()) return line;
  if (failures_untold_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const Nanoseconds now = disk_.now();
  if (now < Nanoseconds(failures_due_ns_.load(std::memory_order_relaxed))) return std::nullopt;
  failures_due_ns_.store((now + kFailuresInterval).count(), std::memory_order_relaxed);
  return "ssd reads failed count=" +
         std::to_string(failures_untold_.exchange(0, std::memory_order_relaxed)) +
         " since the last line about one";
}

// When wait() has something to do at the latest.
Nanoseconds ReadQueue::next_event(Nanoseconds now) const {
  Nanoseconds next = std::max(next_watch_, now);
  for (int32_t place = paused_.head; place >= 0; place = reads_[static_cast<size_t>(place)].next)
    next = std::min(next, std::max(now, reads_[static_cast<size_t>(place)].due));
  return next;
}

// --- Lists.

void ReadQueue::push_back(List& list, int32_t place) {
  at(place).prev = list.tail;
  at(place).next = -1;
  (list.tail >= 0 ? at(list.tail).next : list.head) = place;
  list.tail = place;
}

void ReadQueue::push_front(List& list, int32_t place) {
  at(place).prev = -1;
  at(place).next = list.head;
  (list.head >= 0 ? at(list.head).prev : list.tail) = place;
  list.head = place;
}

void ReadQueue::remove(List& list, int32_t place) {
  const Read& read = at(place);
  (read.prev >= 0 ? at(read.prev).next : list.head) = read.next;
  (read.next >= 0 ? at(read.next).prev : list.tail) = read.prev;
}

ReadQueue::List& ReadQueue::list_of(const Read& read) {
  if (read.state == State::kPaused) return paused_;
  CHECK(read.state == State::kQueued);
  return lists_[index(read.cls)];
}

ReadQueue::ReadId ReadQueue::id_of(int32_t place) const {
  return reads_[static_cast<size_t>(place)].generation << kPlaceBits | static_cast<uint32_t>(place);
}

ReadQueue::Read* ReadQueue::find(ReadId id) {
  return const_cast<Read*>(std::as_const(*this).find(id));
}

const ReadQueue::Read* ReadQueue::find(ReadId id) const {
  const Read& read = reads_[id % kReadsMax];
  return read.state != State::kFree && read.generation == id >> kPlaceBits ? &read : nullptr;
}

void ReadQueue::check() const {
  std::array<int32_t, kReadClasses> queued{}, in_kernel{};
  std::array<uint64_t, kReadClasses> bytes{};
  int32_t stuck = 0;
  for (const Read& read : reads_) {
    const size_t cls = index(read.cls);
    if (read.state == State::kQueued || read.state == State::kPaused) ++queued[cls];
    if (read.state == State::kStuck) ++stuck;
    if (read.state != State::kInKernel) continue;
    ++in_kernel[cls];
    bytes[cls] += read.extent.bytes - read.done;
  }
  CHECK(queued == queued_ && in_kernel == class_reads_ && bytes == class_bytes_);
  CHECK(stuck == stuck_);
  CHECK(active_ == std::accumulate(in_kernel.begin(), in_kernel.end(), 0));
  int32_t listed = 0;
  const auto walk = [&](const List& list, State state) {
    int32_t prev = -1;
    for (int32_t place = list.head; place >= 0; ++listed) {
      const Read& read = reads_[static_cast<size_t>(place)];
      CHECK(read.state == state && read.prev == prev);
      prev = place;
      place = read.next;
    }
    CHECK(list.tail == prev);
  };
  walk(free_, State::kFree);
  walk(paused_, State::kPaused);
  for (const List& list : lists_) walk(list, State::kQueued);
  CHECK(listed + active_ + stuck_ == kReadsMax);
}

}  // namespace weir::ssd
