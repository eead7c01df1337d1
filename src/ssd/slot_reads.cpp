#include "ssd/slot_reads.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace weir::ssd {

namespace {

// A bundle's two, those once more, and then nine.
constexpr size_t kReadsOfSlotMax = 13;
// Of a bundle's parts that were good when they were read first, one in so many is checked again.
constexpr uint32_t kCheckedLoads = 256;
// Lines for the log that may wait; more are dropped.
constexpr size_t kNotices = 64;
constexpr auto kWaitStep = std::chrono::milliseconds(100);

static_assert(SlotReads::kReadingMax * 9 <= ReadQueue::kReadsMax);

}  // namespace

SlotReads::SlotReads(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk,
                     const QueueLimits& limits, const SlotMemory& memory, int64_t slots,
                     int32_t staging, StoreStats& stats)
    : catalogue_(catalogue),
      memory_(memory),
      stats_(stats),
      disk_(std::move(disk)),
      queue_(*disk_, limits),
      staging_(staging),
      slots_(static_cast<size_t>(slots)),
      notices_(kNotices) {
  for (Slot& slot : slots_) slot.reads.reserve(kReadsOfSlotMax);
  free_staging_.reserve(static_cast<size_t>(staging));
  for (int32_t i = staging - 1; i >= 0; --i) free_staging_.push_back(i);
  for (std::vector<SlotPart>* list : {&raw_, &in_work_, &source_parts_}) list->reserve(kPartsMax);
  found_crc_.resize(checks_max());
  settled_.reserve(kReadingMax);
  landed_look_.resize(catalogue.files().size(), -1);
  if (catalogue.packed())
    trust_.resize(
        static_cast<size_t>(catalogue.layers()) * static_cast<size_t>(catalogue.experts()) * kParts,
        Trust::kNone);
}

SlotReads::~SlotReads() {
  while (queue_.in_flight() > 0) {
    settled_.clear();
    take_landed(queue_.wait(kWaitStep));
  }
}

void SlotReads::begin(int32_t index, ExpertKey key) {
  CHECK(can_begin());
  Slot& s = at(index);
  CHECK(!s.reading);
  s.key = key;
  s.reads.clear();
  s.failed = false;
  s.reading = true;
  s.unread.fill(true);
  s.ready.fill(false);
  s.again.fill(false);
  s.source.fill(false);
  s.pending.fill(0);
  s.landed_look.fill(-1);
  if (!catalogue_.in_slot_form()) {
    s.staging = free_staging_.back();
    free_staging_.pop_back();
  }
  ++reading_;
}

std::byte* SlotReads::staged(const Slot& s, int part) const {
  return memory_.staging(s.staging) +
         (part == 0 ? 0 : catalogue_.layer(s.key.layer).staged_bytes[0]);
}

std::byte* SlotReads::part_memory(int32_t index, int part) const {
  return memory_.slot(index) +
         catalogue_.layer(at(index).key.layer).part_offset[static_cast<size_t>(part)];
}

// Where a part is read from; `whole` is where the answer lies if that is the bundle.
std::span<const StoredRange> SlotReads::ranges_of(const Slot& s, int part,
                                                  StoredRange& whole) const {
  if (!from_bundle(s, part)) return catalogue_.ranges(s.key.layer, s.key.expert, part);
  whole = catalogue_.packed_range(s.key.layer, s.key.expert, part);
  return {&whole, 1};
}

// Within what was reserved.
void SlotReads::push(std::vector<SlotPart>& list, const SlotPart& part) {
  CHECK(list.size() < list.capacity());
  list.push_back(part);
}

void SlotReads::add(int32_t index, int part, ReadClass read_class) {
  const auto p = static_cast<size_t>(part);
  Slot& s = at(index);
  const bool packed = from_bundle(s, part);
  if (packed && trust(s.key, part) == Trust::kBad) return use_source(index, part);
  std::byte* to = packed || s.staging < 0 ? part_memory(index, part) : staged(s, part);
  s.unread[p] = false;
  StoredRange whole;
  for (const StoredRange& range : ranges_of(s, part, whole)) {
    const uint64_t begin = range.first_block();
    const auto id = queue_.add({.file = range.file,
                                .offset = begin,
                                .bytes = static_cast<uint32_t>(range.block_bytes()),
                                .needed = static_cast<uint32_t>(range.offset + range.bytes - begin),
                                .to = to,
                                .verified = packed},
                               read_class, static_cast<uint64_t>(index) * kParts + p);
    CHECK(id.has_value() && s.reads.size() < kReadsOfSlotMax);  // kReadingMax sees to it.
    s.reads.push_back(*id);
    ++s.pending[p];
    to += range.block_bytes();
  }
}

void SlotReads::promote(int32_t index, ReadClass read_class) {
  for (const ReadQueue::ReadId read : at(index).reads) queue_.promote(read, read_class);
}

// A slot's first read says nothing of the others: after an error it waits for its next attempt
// while they go.
bool SlotReads::drop(int32_t index) {
  Slot& s = at(index);
  const auto waits = [this](ReadQueue::ReadId read) { return queue_.waits(read); };
  const bool elsewhere = s.source[0] || s.source[1];
  if (!s.reading || elsewhere || s.reads.empty() || !std::ranges::all_of(s.reads, waits))
    return false;
  for (const ReadQueue::ReadId read : s.reads) CHECK(queue_.drop(read));
  s.pending.fill(0);
  end_reading(s);
  return true;
}

void SlotReads::end_reading(Slot& s) {
  s.reading = false;
  s.reads.clear();
  --reading_;
  if (s.staging >= 0) free_staging_.push_back(std::exchange(s.staging, -1));
}

std::span<const int32_t> SlotReads::poll() {
  settled_.clear();
  take_landed(queue_.poll());
  distrust_changed();
  start_source_reads();
  return settled_;
}

std::span<const int32_t> SlotReads::wait(std::chrono::nanoseconds timeout) {
  settled_.clear();
  take_landed(queue_.wait(timeout));
  distrust_changed();
  start_source_reads();
  return settled_;
}

std::span<const int32_t> SlotReads::check_files() {
  settled_.clear();
  queue_.look_at_files_read();
  distrust_changed();
  return settled_;
}

// A part is there for which no checksum vouches.
void SlotReads::note_landed(Slot& s, int part) {
  s.landed_look[static_cast<size_t>(part)] = queue_.looks();
  StoredRange whole;
  for (const StoredRange& range : ranges_of(s, part, whole)) {
    landed_look_[static_cast<size_t>(range.file)] = queue_.looks();
    if (!queue_.changed_in_place(range.file)) continue;
    s.failed = true;  // Other files' ranges came after the change was seen.
    s.failure = queue_.describe_change(range.file);
  }
}

// The file that has been changed since a part of the slot was read from it; -1: none has.
int32_t SlotReads::doubtful_file(const Slot& s) const {
  StoredRange whole;
  for (int part = 0; part < kParts; ++part) {
    const int64_t look = s.landed_look[static_cast<size_t>(part)];
    if (look < 0) continue;
    for (const StoredRange& range : ranges_of(s, part, whole))
      if (queue_.changed_in_place(range.file) && look >= queue_.good_look(range.file))
        return range.file;
  }
  return -1;
}

void SlotReads::distrust_changed() {
  if (!queue_.take_changed()) return;
  distrusted_ = true;
  for (int32_t file = 0; file < std::ssize(landed_look_); ++file) {
    int64_t& look = landed_look_[static_cast<size_t>(file)];
    if (!queue_.changed_in_place(file) || look < queue_.good_look(file)) continue;
    doubt_ = queue_.describe_change(file);
    look = -1;
  }
  for (int32_t index = 0; index < std::ssize(slots_); ++index) {
    Slot& s = at(index);
    const int32_t file = doubtful_file(s);
    if (file < 0) continue;
    s.failed = true;
    s.failure = queue_.describe_change(file);
    s.landed_look.fill(-1);
    if (s.reading) settle(index);
  }
}

void SlotReads::take_landed(std::span<const Landed> landed) {
  for (const Landed& read : landed) {
    const auto index = static_cast<int32_t>(read.owner / kParts);
    const auto part = static_cast<size_t>(read.owner % kParts);
    Slot& s = at(index);
    // A disk that does not answer has lost nothing, and what the kernel may still write to must not
    // be read into from elsewhere.
    const bool lost = from_bundle(s, static_cast<int>(part)) && read.failure != nullptr &&
                      read.released && read.failure->error != ETIMEDOUT && !s.failed;
    if (read.failure != nullptr && !lost) {
      s.failed = true;
      s.failure = read.failure->message;
    }
    if (!read.released) continue;
    CHECK(s.pending[part] > 0);
    if (--s.pending[part] == 0) part_landed(index, static_cast<int>(part), lost);
  }
}

// All reads of a part have ended. `lost`: the bundle's, and there is the checkpoint.
void SlotReads::part_landed(int32_t index, int part, bool lost) {
  Slot& s = at(index);
  const bool packed = from_bundle(s, part);
  const bool check = packed && to_be_checked(s.key, part);
  if (!lost && !s.failed && !check) note_landed(s, part);
  if (lost)
    use_source(index, part);
  else if (!s.failed && (check || (s.staging >= 0 && !packed)))
    push(raw_, {.slot = index, .part = part, .check = check});
  else
    s.ready[static_cast<size_t>(part)] = !s.failed;
  settle(index);
}

// Once a slot's reads have ended and nothing of it waits for a job, it is like any other.
void SlotReads::settle(int32_t index) {
  Slot& s = at(index);
  CHECK(s.reading);
  for (size_t part = 0; part < kParts; ++part)
    if (s.unread[part] || s.pending[part] > 0 || (!s.failed && !s.ready[part])) return;
  if (s.failed) {
    const auto of_slot = [index](const SlotPart& part) { return part.slot == index; };
    if (std::ranges::any_of(in_work_, of_slot)) return;  // Until they are done with it.
    std::erase_if(raw_, of_slot);
    stats_.failed_experts.add();
  }
  end_reading(s);
  settled_.push_back(index);
}

SlotReads::Trust& SlotReads::trust(ExpertKey key, int part) {
  const auto expert = static_cast<size_t>(key.layer) * static_cast<size_t>(catalogue_.experts()) +
                      static_cast<size_t>(key.expert);
  return trust_[expert * kParts + static_cast<size_t>(part)];
}

// The first load of each part, and a sample of those that come later.
bool SlotReads::to_be_checked(ExpertKey key, int part) {
  const int32_t bundle = catalogue_.packed_range(key.layer, key.expert, part).file;
  return trust(key, part) != Trust::kSeenGood || queue_.changed_in_place(bundle) ||
         ++trusted_loads_ % kCheckedLoads == 0;
}

// A checksum is there. What is wrong twice is read from the checkpoint from then on.
void SlotReads::checked(const SlotPart& done) {
  Slot& s = at(done.slot);
  const auto part = static_cast<size_t>(done.part);
  const uint32_t expected = catalogue_.packed(s.key.layer, s.key.expert).crc[part];
  const uint32_t found = found_crc_[static_cast<size_t>(done.found)];
  if (found == expected) {
    trust(s.key, done.part) = Trust::kSeenGood;
    s.ready[part] = !s.failed;
    return;
  }
  stats_.crc_failures.add();
  const StoredRange range = catalogue_.packed_range(s.key.layer, s.key.expert, done.part);
  const bool again = !std::exchange(s.again[part], true);
  (void)notices_.try_push("ssd checksum wrong file=" + disk_->path(range.file) + " offset=" +
                          std::to_string(range.offset) + " bytes=" + std::to_string(range.bytes) +
                          (again ? " (read again)" : " (the checkpoint is read instead)"));
  if (s.failed) return;
  trust(s.key, done.part) = Trust::kNone;
  if (again)
    add(done.slot, done.part, ReadClass::kDemand);
  else
    use_source(done.slot, done.part);
}

// The bundle has lost a part: what is needed is read as the checkpoint has it.
void SlotReads::use_source(int32_t index, int part) {
  Slot& s = at(index);
  const auto p = static_cast<size_t>(part);
  trust(s.key, part) = Trust::kBad;
  s.source[p] = s.unread[p] = true;
  push(source_parts_, {.slot = index, .part = part});
}

// As staging buffers allow.
void SlotReads::start_source_reads() {
  std::erase_if(source_parts_, [this](const SlotPart& waiting) {
    Slot& s = at(waiting.slot);
    if (s.staging < 0) {
      if (free_staging_.empty()) return false;
      s.staging = free_staging_.back();
      free_staging_.pop_back();
    }
    stats_.source_parts.add();
    add(waiting.slot, waiting.part, ReadClass::kDemand);
    return true;
  });
}

void SlotReads::collect(ExpertWave& wave) {
  CHECK(in_work_.empty());
  for (SlotPart& raw : raw_) {
    const Slot& s = at(raw.slot);
    if (s.failed) continue;
    if (raw.check) {
      raw.found = static_cast<int32_t>(wave.check.size());
      const auto bytes = catalogue_.layer(s.key.layer).part_bytes[static_cast<size_t>(raw.part)];
      wave.check.push_back({.bytes = {part_memory(raw.slot, raw.part), bytes},
                            .found = &found_crc_[wave.check.size()]});
    } else {
      wave.unpack.push_back({.layer = s.key.layer,
                             .expert = s.key.expert,
                             .part = raw.part,
                             .staged = staged(s, raw.part),
                             .slot = part_memory(raw.slot, raw.part)});
      stats_.unpacked.add();
    }
    push(in_work_, raw);
  }
  raw_.clear();
}

std::span<const int32_t> SlotReads::finish() {
  settled_.clear();
  // settle() looks whether any part of a slot is still in work.
  while (!in_work_.empty()) {
    const SlotPart done = in_work_.back();
    in_work_.pop_back();
    Slot& s = at(done.slot);
    if (done.check)
      checked(done);
    else
      s.ready[static_cast<size_t>(done.part)] = !s.failed;
    settle(done.slot);
  }
  return settled_;
}

bool SlotReads::there(int32_t index, int part) const {
  return at(index).ready[static_cast<size_t>(part)] ||
         std::ranges::any_of(in_work_, [&](const SlotPart& work) {
           return work.slot == index && work.part == part && !work.check;
         });
}

}  // namespace weir::ssd
