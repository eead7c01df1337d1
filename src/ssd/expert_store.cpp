#include "ssd/expert_store.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace weir::ssd {

namespace {

using std::chrono::steady_clock;

constexpr uint64_t kMiB = uint64_t{1} << 20;
// No slot crosses a chunk, which is the largest piece that the kernel registers or backs at once.
constexpr uint64_t kChunkBytes = 1024 * kMiB;
// Below, a layer could not compute one expert while it reads the next.
constexpr int32_t kSlotsMin = 4;
// Staging buffers: as many reads as keep a disk busy, at most a sixteenth of the memory.
constexpr int32_t kStagingMin = 2, kStagingMax = 32;
constexpr uint64_t kStagingShare = 16;
// Slots that may be read at once; each has at most nine reads (three matrices, each with scales and
// biases), and the queue holds 1,024.
constexpr int32_t kReadingMax = 96;
// Of prompts: about 16 MiB of small experts, twice what keeps a disk busy.
constexpr int32_t kReadingOfPrompts = 16;
// Of prompts: experts that take the place of others worth more, on their way through; as many are
// read as are computed.
constexpr int32_t kPassingMax = 2 * kReadingOfPrompts;
// Slots that may hold what a prompt's next layer will ask for: an eighth.
constexpr int64_t kAheadShare = 8;
// A bundle's two, those once more, and then nine.
constexpr size_t kReadsOfSlotMax = 13;
// Of a bundle's parts that were good when they were read first, one in so many is checked again.
constexpr uint32_t kCheckedLoads = 256;
// Guesses in flight: each 2 MiB read that is on its way delays the next demand by a millisecond
// (reference: expert-streaming, 8.3).
constexpr int32_t kGuessesInFlight = 2;
// Slots whose memory is there before the first token.
constexpr uint64_t kFaultedFirst = 64 * kMiB;
constexpr uint64_t kFaultStep = 2 * kMiB;
constexpr auto kWaitStep = std::chrono::milliseconds(100);

int madvise_populate(std::byte* memory, uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  return ::madvise(memory, bytes, MADV_POPULATE_WRITE);
#else
  constexpr int kMadvPopulateWrite = 23;
  return ::madvise(memory, bytes, kMadvPopulateWrite);
#endif
}

// Takes memory from the kernel that nobody uses yet.
void fault(std::byte* memory, uint64_t bytes) {
  if (madvise_populate(memory, bytes) == 0) return;
  for (uint64_t at = 0; at < bytes; at += kBlockBytes)
    *const_cast<volatile std::byte*>(memory + at) = std::byte{0};
}

// Rounded up, so that what a message asks for is enough.
std::string size_text(uint64_t bytes) {
  constexpr uint64_t kKiB = 1024;
  return bytes < 16 * kMiB ? std::to_string((bytes + kKiB - 1) / kKiB) + " KiB"
                           : std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
}

// As many as `memory` holds. With a bundle they are for what it has lost.
int32_t staging_buffers(const ExpertCatalogue& catalogue, uint64_t memory) {
  if (catalogue.packed()) return kStagingMin;
  return static_cast<int32_t>(
      std::clamp<uint64_t>(memory / catalogue.staging_bytes(), kStagingMin, kStagingMax));
}

}  // namespace

Result<StorePlan> plan_store(const ExpertCatalogue& catalogue, uint64_t memory, int32_t top_k) {
  StorePlan plan;
  plan.memory = memory;
  plan.experts = int64_t{catalogue.layers()} * catalogue.experts();
  plan.cycle_bytes = catalogue.cycle_bytes(top_k);
  const uint64_t staged = catalogue.staging_bytes();
  if (staged > 0) plan.staging = staging_buffers(catalogue, memory / kStagingShare);
  const uint64_t staging_memory = staged * static_cast<uint64_t>(plan.staging);
  uint64_t least = staging_memory;
  for (int32_t c = 0; c < catalogue.classes(); ++c)
    least += catalogue.slot_bytes(c) * static_cast<uint64_t>(kSlotsMin);
  if (memory < least)
    return fail(ErrorCode::kCapacity, "expert memory: expected at least " + size_text(least) +
                                          " (" + std::to_string(kSlotsMin) +
                                          " experts of each size, and buffers), found " +
                                          size_text(memory) + "; raise --expert-memory");
  const uint64_t bank = catalogue.bank_bytes();
  for (int32_t c = 0; c < catalogue.classes(); ++c) {
    // Shares in proportion to what the classes hold; nobody needs more slots than experts.
    const double share = static_cast<double>(catalogue.class_bytes(c)) / static_cast<double>(bank);
    const auto bytes = static_cast<uint64_t>(static_cast<double>(memory - least) * share);
    const uint64_t slots = std::min(bytes / catalogue.slot_bytes(c) + kSlotsMin,
                                    catalogue.class_bytes(c) / catalogue.slot_bytes(c));
    plan.slots_of_class.push_back(static_cast<int32_t>(slots));
    plan.slots += static_cast<int64_t>(slots);
    plan.slot_memory += slots * catalogue.slot_bytes(c);
  }
  return plan;
}

uint64_t memory_for_cycles(const ExpertCatalogue& catalogue, int32_t top_k, double cycles) {
  const auto slots =
      static_cast<uint64_t>(std::ceil(cycles * static_cast<double>(catalogue.cycle_bytes(top_k))));
  // Buffers take a share of what they are part of.
  const uint64_t staged = catalogue.staging_bytes();
  uint64_t buffers = 0;
  if (staged > 0)
    buffers = static_cast<uint64_t>(staging_buffers(catalogue, slots / (kStagingShare - 1)));
  return slots + buffers * staged;
}

uint64_t whole_memory(const ExpertCatalogue& catalogue) {
  return catalogue.bank_bytes() + catalogue.staging_bytes() * kStagingMax;
}

Result<std::unique_ptr<ExpertStore>> ExpertStore::create(const ExpertCatalogue& catalogue,
                                                         std::unique_ptr<Disk> disk,
                                                         const StoreOptions& options) {
  WEIR_ASSIGN(StorePlan plan, plan_store(catalogue, options.memory, options.top_k));
  for (const std::string& path : catalogue.files()) {
    WEIR_ASSIGN(const int32_t number, disk->open_file(path));
    CHECK(number == &path - catalogue.files().data());
  }
  std::unique_ptr<ExpertStore> store(
      new ExpertStore(catalogue, std::move(disk), options, std::move(plan)));
  WEIR_TRY(store->allocate());
  return store;
}

namespace {

std::vector<int32_t> classes_of_layers(const ExpertCatalogue& catalogue) {
  std::vector<int32_t> classes;
  for (int32_t l = 0; l < catalogue.layers(); ++l)
    classes.push_back(catalogue.layer(l).class_index);
  return classes;
}

}  // namespace

ExpertStore::ExpertStore(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk,
                         const StoreOptions& options, StorePlan plan)
    : catalogue_(catalogue),
      disk_(std::move(disk)),
      options_(options),
      plan_(std::move(plan)),
      cache_(catalogue.layers(), catalogue.experts(), classes_of_layers(catalogue),
             plan_.slots_of_class),
      prefetcher_(catalogue.layers(), catalogue.experts(), options.top_k, options.sequences_max,
                  options.prefetch),
      queue_(*disk_, options.queue),
      slots_(static_cast<size_t>(plan_.slots)),
      notices_(64),
      ahead_slots_max_(static_cast<int32_t>(plan_.slots / kAheadShare)),
      usable_(plan_.slots_of_class.size()) {
  for (Slot& slot : slots_) slot.reads.reserve(kReadsOfSlotMax);
  const auto experts = static_cast<size_t>(catalogue.experts());
  failures_.resize(experts);
  demands_.resize(experts);
  for (std::vector<int32_t>* list : {&order_, &given_, &retiring_}) list->reserve(experts);
  const size_t parts = parts_in_work();
  raw_.reserve(parts);
  unpacking_.reserve(parts);
  found_crc_.resize(parts);
  source_parts_.reserve(parts);
  if (catalogue.packed())
    trust_.resize(static_cast<size_t>(catalogue.layers()) * experts * kParts, Trust::kNone);
}

// That may wait to be unpacked or checked at once.
size_t ExpertStore::parts_in_work() const {
  return kParts * static_cast<size_t>(catalogue_.packed() ? kReadingMax : plan_.staging);
}

ExpertStore::~ExpertStore() {
  stopping_.store(true, std::memory_order_relaxed);
  if (faulter_.joinable()) faulter_.join();
  // The kernel may still write to slots.
  while (queue_.in_flight() > 0) take_landed(queue_.wait(kWaitStep));
}

Result<void> ExpertStore::allocate() {
  size_t next = 0;
  for (int32_t c = 0; c < catalogue_.classes(); ++c) {
    const uint64_t bytes = catalogue_.slot_bytes(c);
    const uint64_t per_chunk = std::max<uint64_t>(kChunkBytes / bytes, 1);
    auto left = static_cast<uint64_t>(plan_.slots_of_class[static_cast<size_t>(c)]);
    while (left > 0) {
      const uint64_t count = std::min(left, per_chunk);
      WEIR_ASSIGN(HugeBuffer chunk, HugeBuffer::allocate(count * bytes));
      for (uint64_t i = 0; i < count; ++i) slots_[next++].memory = chunk.data() + i * bytes;
      memory_.push_back(std::move(chunk));
      left -= count;
    }
  }
  if (plan_.staging > 0) {
    WEIR_ASSIGN(staging_memory_, HugeBuffer::allocate(catalogue_.staging_bytes() *
                                                      static_cast<uint64_t>(plan_.staging)));
    for (int32_t i = plan_.staging - 1; i >= 0; --i) free_staging_.push_back(i);
  }
  faulter_ = std::thread([this] { fault_in(); });
  // The first token needs some.
  for (int32_t c = 0; c < catalogue_.classes(); ++c)
    while (usable_[static_cast<size_t>(c)].load(std::memory_order_acquire) == 0)
      std::this_thread::yield();
  return {};
}

// Slots come into use one after another as the kernel gives their memory, which takes seconds a
// GiB on some machines: not in a request's way.
void ExpertStore::fault_in() {
  pthread_setname_np(pthread_self(), "weir-memory");
  if (staging_memory_.bytes() > 0) fault(staging_memory_.data(), staging_memory_.bytes());
  std::vector<int32_t> done(usable_.size(), 0);
  std::vector<int32_t> base(usable_.size(), 0);
  for (size_t c = 1; c < base.size(); ++c) base[c] = base[c - 1] + plan_.slots_of_class[c - 1];
  uint64_t total = 0;
  const auto step = [&](size_t c) {
    const uint64_t bytes = catalogue_.slot_bytes(static_cast<int32_t>(c));
    const auto count = static_cast<int32_t>(std::max<uint64_t>(kFaultStep / bytes, 1));
    const int32_t end = std::min(done[c] + count, allowed_slots(c));
    for (; done[c] < end; ++done[c]) {
      fault(slots_[static_cast<size_t>(base[c] + done[c])].memory, bytes);
      total += bytes;
    }
    // All classes begin with what the first token needs.
    if (done[c] >= std::min(kSlotsMin, plan_.slots_of_class[c]))
      usable_[c].store(done[c], std::memory_order_release);
  };
  bool lowered = false;
  for (bool more = true; more && !stopping_.load(std::memory_order_relaxed);) {
    more = false;
    const uint64_t before = total;
    for (size_t c = 0; c < done.size(); ++c) {
      if (done[c] == plan_.slots_of_class[c]) continue;
      more = true;
      step(c);
    }
    if (more && total == before) std::this_thread::sleep_for(kWaitStep);  // No more is allowed now.
    // Behind the first, out of the way of what computes.
    if (total > kFaultedFirst && !std::exchange(lowered, true))
      (void)::setpriority(PRIO_PROCESS, 0, 10);
  }
}

int32_t ExpertStore::allowed_slots(size_t cls) const {
  const int32_t planned = plan_.slots_of_class[cls];
  const int64_t percent = std::clamp(allowed_.load(std::memory_order_relaxed), 0, 100);
  return std::max(std::min(planned, kSlotsMin), static_cast<int32_t>(planned * percent / 100));
}

// Between steps: nothing is pinned but guesses that are read.
void ExpertStore::shed_or_grow(int32_t cls) {
  const int32_t more = allowed_slots(static_cast<size_t>(cls)) - cache_.usable(cls);
  if (more > 0) {
    // The kernel gives their memory when they are read into.
    slots_shed_ -= static_cast<int64_t>(cache_.grow(cls, more).size());
  } else if (more < 0) {
    const std::span<const int32_t> shed = cache_.shrink(cls, -more);
    slots_shed_ += static_cast<int64_t>(shed.size());
    for (const int32_t index : shed)  // Slots are whole pages.
      (void)::madvise(slot(index).memory, catalogue_.slot_bytes(cls), MADV_DONTNEED);
  }
}

ExpertWave ExpertStore::make_wave() const {
  ExpertWave wave;
  const auto experts = static_cast<size_t>(catalogue_.experts());
  wave.unpack.reserve(kParts * static_cast<size_t>(plan_.staging));
  wave.check.reserve(parts_in_work());
  wave.activate.reserve(experts);
  wave.down.reserve(experts);
  wave.failed.reserve(experts);
  return wave;
}

void ExpertStore::begin_step(int32_t generated_rows) {
  int64_t usable = 0;
  for (size_t c = 0; c < usable_.size(); ++c) {
    const auto cls = static_cast<int32_t>(c);
    cache_.set_usable(cls, usable_[c].load(std::memory_order_acquire));
    shed_or_grow(cls);
    usable += cache_.usable(cls);
  }
  stats_.slots_usable.set(static_cast<double>(usable));
  stats_.slots_shed.set(static_cast<double>(slots_shed_));
  step_begin_ = steady_clock::now();
  step_stall_ns_ = 0;
  step_tokens_ = generated_rows;
  step_has_prompts_ = false;
  if (generated_rows > 0) prefetcher_.begin_step();  // Prompts go by between tokens.
  stats_.steps.add();
  stats_.tokens.add(static_cast<uint64_t>(generated_rows));
}

void ExpertStore::end_step() {
  const double seconds = std::chrono::duration<double>(steady_clock::now() - step_begin_).count();
  const double stalled = static_cast<double>(step_stall_ns_) * 1e-9;
  stats_.stall_ns.add(static_cast<uint64_t>(step_stall_ns_));
  stats_.step_ns.add(static_cast<uint64_t>(seconds * 1e9));
  if (step_tokens_ == 0) return;  // Of prompts alone: says nothing of what generated tokens need.
  // The pace of a step that also had prompts is not that of generated tokens.
  prefetcher_.step_done(seconds, stalled, step_has_prompts_ ? 0 : step_tokens_);
  cache_.advance();
}

int64_t ExpertStore::bytes_of(ExpertKey key) const {
  return static_cast<int64_t>(catalogue_.slot_bytes(catalogue_.layer(key.layer).class_index));
}

std::byte* ExpertStore::memory_of(int32_t demand) const {
  return slots_[static_cast<size_t>(demands_[static_cast<size_t>(demand)].slot)].memory;
}

const std::string& ExpertStore::failure_of(int32_t demand) const {
  return failures_[static_cast<size_t>(demand)];
}

void ExpertStore::begin_layer(int32_t layer, std::span<const ExpertDemand> demands,
                              std::span<const RoutedRow> rows) {
  CHECK(layer_ < 0 && demands.size() <= demands_.size());
  layer_ = layer;
  asked_ = demands;
  generated_ = std::ranges::any_of(
      demands, [](const ExpertDemand& asked) { return asked.generated_rows > 0; });
  int32_t prompt_choices = 0;
  for (const ExpertDemand& asked : demands) prompt_choices += asked.prompt_rows;
  prompt_rows_ = (prompt_choices + options_.top_k - 1) / options_.top_k;
  step_has_prompts_ |= prompt_rows_ > 0;
  order_.clear();
  next_waiting_ = 0;
  first_wave_ = true;
  unfinished_ = static_cast<int32_t>(demands.size());
  take_landed(queue_.poll());
  for (size_t i = 0; i < demands.size(); ++i) hold(i);
  count_union(demands);
  plan_read_ahead();
  prefetcher_.disk_busy(!order_.empty());
  start_waiting();
  for (const RoutedRow& row : rows) {
    const std::span experts(row.experts, static_cast<size_t>(options_.top_k));
    if (row.prompt)
      prefetcher_.routed_prompt(layer, row.sequence, experts);
    else
      prefetcher_.routed(layer, row.sequence, experts);
  }
  take_new_guesses();
}

// All rows have been told: what none of them makes likely is contradicted, and no sooner.
void ExpertStore::take_new_guesses() {
  for (const ExpertKey& key : prefetcher_.likely()) cache_.protect(key);
  drop_contradicted();
}

// A layer of which nearly all experts were asked for says the same of the next one.
void ExpertStore::plan_read_ahead() {
  if (generated_) return;
  const bool all = 10 * asked_.size() >= 9 * static_cast<size_t>(catalogue_.experts());
  ahead_ = {.layer = all && layer_ + 1 < catalogue_.layers() ? layer_ + 1 : -1, .expert = 0};
  ahead_slots_ = 0;
}

void ExpertStore::count_union(std::span<const ExpertDemand> demands) {
  if (step_tokens_ == 0) return;
  const auto size = std::min<size_t>(std::bit_width(static_cast<uint32_t>(step_tokens_)) - 1,
                                     StoreStats::kBatchSizes - 1);
  const auto experts = std::ranges::count_if(
      demands, [](const ExpertDemand& asked) { return asked.generated_rows > 0; });
  stats_.layer_runs[size].add();
  stats_.layer_experts[size].add(static_cast<uint64_t>(experts));
}

// Pins what is there, or on its way, for the layer's run.
void ExpertStore::hold(size_t demand) {
  const ExpertDemand& asked = asked_[demand];
  const ExpertKey key{layer_, asked.expert};
  const int32_t index = cache_.slot_of(key);
  const bool generated = asked.generated_rows > 0;
  demands_[demand] = {.state = index < 0 ? State::kWaiting : State::kHeld, .slot = index};
  if (generated) cache_.touch(key, ExpertCache::decode_weight(asked.generated_rows));
  if (asked.prompt_rows > 0) cache_.touch_prompt(key, asked.prompt_rows, prompt_rows_);
  if (index < 0) {
    (generated ? stats_.absent : stats_.prompt_absent).add();
    if (generated) prefetcher_.missed(key);
    order_.push_back(static_cast<int32_t>(demand));
    return;
  }
  cache_.pin(index);
  Slot& s = slot(index);
  (!generated ? stats_.prompt_ready : s.reading ? stats_.in_flight : stats_.ready).add();
  if (s.reading)
    for (const ReadQueue::ReadId read : s.reads)
      queue_.promote(read, generated ? ReadClass::kDemand : ReadClass::kPrefill);
  if (!std::exchange(s.guessed, false)) return;
  prefetcher_.used(key, bytes_of(key), s.reading);
  if (s.reading) --guesses_reading_;
}

void ExpertStore::looked_ahead(int32_t layer, std::span<const RoutedRow> rows) {
  for (const RoutedRow& row : rows)
    prefetcher_.looked_ahead(layer, row.sequence,
                             {row.experts, static_cast<size_t>(options_.top_k)});
  take_new_guesses();
}

bool ExpertStore::can_start() const {
  // A prompt asks for all experts of a layer, one after another, through as few slots as keep the
  // disk busy; generated tokens ask for what they all need at once.
  const int32_t most = generated_ ? kReadingMax : kReadingOfPrompts;
  return reading_ < most && (catalogue_.in_slot_form() || !free_staging_.empty());
}

// A slot for a demand, or -1. What only prompts ask for takes the place of what is worth less;
// where there is none it goes through a few slots that it takes from others.
int32_t ExpertStore::place(size_t demand, ExpertKey key) {
  if (asked_[demand].generated_rows > 0) return cache_.place(key, layer_);
  const int32_t index = cache_.place_prompt(key, layer_);
  if (index >= 0 || passing_ == kPassingMax) return index;
  const int32_t taken = cache_.place(key, layer_);
  if (taken >= 0) {
    demands_[demand].passing = true;
    ++passing_;
  }
  return taken;
}

// All first parts before any second one: an expert begins with its first.
void ExpertStore::start_waiting() {
  const size_t begin = next_waiting_;
  for (; next_waiting_ < order_.size() && can_start(); ++next_waiting_) {
    const auto demand = static_cast<size_t>(order_[next_waiting_]);
    const ExpertKey key{layer_, asked_[demand].expert};
    const int32_t index = place(demand, key);
    if (index < 0) break;
    begin_read(index, key);
    cache_.pin(index);
    demands_[demand].state = State::kHeld;
    demands_[demand].slot = index;
  }
  const ReadClass read_class = generated_ ? ReadClass::kDemand : ReadClass::kPrefill;
  for (int part = 0; part < kParts; ++part)
    for (size_t i = begin; i < next_waiting_; ++i)
      add_reads(demands_[static_cast<size_t>(order_[i])].slot, part, read_class);
}

// The slot becomes this expert's, of which no byte is there. REQUIRES: can_start(); one pin.
void ExpertStore::begin_read(int32_t index, ExpertKey key) {
  Slot& s = slot(index);
  CHECK(!s.reading);
  if (s.guessed) prefetcher_.wasted(s.key, bytes_of(s.key));
  s.key = key;
  s.reads.clear();
  s.failed = s.guessed = false;
  s.reading = true;
  s.unread.fill(true);
  s.ready.fill(false);
  s.again.fill(false);
  s.source.fill(false);
  s.pending.fill(0);
  if (!catalogue_.in_slot_form()) {
    s.staging = free_staging_.back();
    free_staging_.pop_back();
  }
  ++reading_;
}

std::byte* ExpertStore::staged(const Slot& s, int part) const {
  return staging_memory_.data() + static_cast<uint64_t>(s.staging) * catalogue_.staging_bytes() +
         (part == 0 ? 0 : catalogue_.layer(s.key.layer).staged_bytes[0]);
}

void ExpertStore::add_reads(int32_t index, int part, ReadClass read_class) {
  const auto p = static_cast<size_t>(part);
  Slot& s = slot(index);
  const bool packed = catalogue_.packed() && !s.source[p];
  if (packed && trust(s.key, part) == Trust::kBad) return use_source(index, part);
  std::byte* to = packed || s.staging < 0 ? part_memory(s, part) : staged(s, part);
  s.unread[p] = false;
  StoredRange whole;
  std::span<const StoredRange> ranges(&whole, 1);
  if (packed)
    whole = catalogue_.packed_range(s.key.layer, s.key.expert, part);
  else
    ranges = catalogue_.ranges(s.key.layer, s.key.expert, part);
  for (const StoredRange& range : ranges) {
    const uint64_t begin = range.first_block();
    const auto id = queue_.add({.file = range.file,
                                .offset = begin,
                                .bytes = static_cast<uint32_t>(range.block_bytes()),
                                .needed = static_cast<uint32_t>(range.offset + range.bytes - begin),
                                .to = to},
                               read_class, static_cast<uint64_t>(index) * kParts + p);
    CHECK(id.has_value());  // kReadingMax sees to it.
    s.reads.push_back(*id);
    ++s.pending[p];
    to += range.block_bytes();
  }
}

void ExpertStore::take_landed(std::span<const Landed> landed) {
  for (const Landed& read : landed) {
    const auto index = static_cast<int32_t>(read.owner / kParts);
    const auto part = static_cast<size_t>(read.owner % kParts);
    Slot& s = slot(index);
    const auto number = static_cast<int32_t>(part);
    const bool packed = catalogue_.packed() && !s.source[part];
    // A disk that answers nobody has lost nothing, and what the kernel may still write to must not
    // be read into from elsewhere.
    const bool lost = packed && read.failure != nullptr && read.released &&
                      read.failure->error != ETIMEDOUT && !s.failed;
    if (read.failure != nullptr && !lost) {
      s.failed = true;
      s.failure = read.failure->message;
    }
    if (!read.released) continue;
    CHECK(s.pending[part] > 0);
    if (--s.pending[part] > 0) continue;
    const bool check = packed && to_be_checked(s.key, number);
    if (lost)
      use_source(index, number);
    else if (!s.failed && (check || (s.staging >= 0 && !packed)))
      raw_.push_back({.slot = index, .part = number, .check = check});
    else
      s.ready[part] = !s.failed;
    settle(index);
  }
}

std::byte* ExpertStore::part_memory(const Slot& s, int part) const {
  return s.memory + catalogue_.layer(s.key.layer).part_offset[static_cast<size_t>(part)];
}

ExpertStore::Trust& ExpertStore::trust(ExpertKey key, int part) {
  const auto expert = static_cast<size_t>(key.layer) * static_cast<size_t>(catalogue_.experts()) +
                      static_cast<size_t>(key.expert);
  return trust_[expert * kParts + static_cast<size_t>(part)];
}

// The first load of each part, and a sample of those that come later.
bool ExpertStore::to_be_checked(ExpertKey key, int part) {
  return trust(key, part) != Trust::kSeenGood || ++trusted_loads_ % kCheckedLoads == 0;
}

// A checksum is there. What is wrong twice is read from the checkpoint from then on.
void ExpertStore::checked(const SlotPart& done) {
  Slot& s = slot(done.slot);
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
    add_reads(done.slot, done.part, ReadClass::kDemand);
  else
    use_source(done.slot, done.part);
}

// The bundle has lost a part: what is needed is read as the checkpoint has it.
void ExpertStore::use_source(int32_t index, int part) {
  Slot& s = slot(index);
  const auto p = static_cast<size_t>(part);
  trust(s.key, part) = Trust::kBad;
  s.source[p] = s.unread[p] = true;
  source_parts_.push_back({.slot = index, .part = part});
}

// As staging buffers allow.
void ExpertStore::start_source_reads() {
  std::erase_if(source_parts_, [this](const SlotPart& waiting) {
    Slot& s = slot(waiting.slot);
    if (s.staging < 0) {
      if (free_staging_.empty()) return false;
      s.staging = free_staging_.back();
      free_staging_.pop_back();
    }
    stats_.source_parts.add();
    add_reads(waiting.slot, waiting.part, ReadClass::kDemand);
    return true;
  });
}

// Once a slot's reads have ended and nothing of it waits to be unpacked, it is like any other.
void ExpertStore::settle(int32_t index) {
  Slot& s = slot(index);
  CHECK(s.reading);
  for (size_t part = 0; part < kParts; ++part)
    if (s.unread[part] || s.pending[part] > 0 || (!s.failed && !s.ready[part])) return;
  const auto of_slot = [index](const SlotPart& part) { return part.slot == index; };
  if (s.failed) {
    if (std::ranges::any_of(unpacking_, of_slot)) return;  // Until they are done with it.
    std::erase_if(raw_, of_slot);
    stats_.failed_experts.add();
  }
  s.reading = false;
  s.reads.clear();
  --reading_;
  if (s.guessed) --guesses_reading_;
  if (s.staging >= 0) free_staging_.push_back(std::exchange(s.staging, -1));
  cache_.unpin(index);
  if (!s.failed) return;
  if (std::exchange(s.guessed, false)) prefetcher_.wasted(s.key, bytes_of(s.key));
  if (cache_.pins(index) == 0) cache_.discard(index);  // Else by who asked for it.
}

// Spare depth only: while somebody waits for the disk, a guess would make him wait longer.
void ExpertStore::start_guesses() {
  if (next_waiting_ < order_.size() && layer_ >= 0) return;
  while (guesses_reading_ < kGuessesInFlight && !queue_.demand_outstanding() && !queue_.stalled() &&
         can_start()) {
    Prefetcher::Guess guess;
    if (!prefetcher_.next([&](ExpertKey key) { return cache_.slot_of(key) < 0; }, guess)) return;
    const int32_t index =
        cache_.place_speculative(guess.key, std::max(layer_, 0), guess.probability);
    if (index < 0) continue;
    begin_read(index, guess.key);
    slot(index).guessed = true;
    ++guesses_reading_;
    prefetcher_.issued(guess, bytes_of(guess.key));
    for (int part = 0; part < kParts; ++part) add_reads(index, part, ReadClass::kSpeculative);
  }
}

// Behind a long prompt's layer comes the next, which will want nearly every expert too: they are
// read in the order of the file while this one is computed, and attention.
void ExpertStore::read_ahead() {
  if (ahead_.layer < 0 || (layer_ >= 0 && next_waiting_ < order_.size())) return;
  while (reading_ < kReadingOfPrompts && !queue_.stalled() &&
         (catalogue_.in_slot_form() || !free_staging_.empty())) {
    if (ahead_.expert == catalogue_.experts() || ahead_slots_ == ahead_slots_max_) {
      ahead_.layer = -1;
      return;
    }
    const ExpertKey key = ahead_;
    ++ahead_.expert;
    if (cache_.slot_of(key) >= 0) {
      cache_.protect(key);
      continue;
    }
    const int32_t index = cache_.place(key, std::max(layer_, 0));
    if (index < 0) return;
    cache_.protect(key);
    begin_read(index, key);
    ++ahead_slots_;
    stats_.read_ahead.add();
    for (int part = 0; part < kParts; ++part) add_reads(index, part, ReadClass::kPrefill);
  }
}

// A guess that newer knowledge contradicts is taken back while all of it waits. Its first read says
// nothing of the others: after an error it waits for its next attempt while they go.
void ExpertStore::drop_contradicted() {
  for (const ExpertKey& key : prefetcher_.contradicted()) {
    const int32_t index = cache_.slot_of(key);
    if (index < 0) continue;
    Slot& s = slot(index);
    const auto waits = [this](ReadQueue::ReadId read) { return queue_.waits(read); };
    const bool elsewhere = s.source[0] || s.source[1];
    if (!s.guessed || !s.reading || elsewhere || s.reads.empty() ||
        !std::ranges::all_of(s.reads, waits))
      continue;
    for (const ReadQueue::ReadId read : s.reads) CHECK(queue_.drop(read));
    s.reads.clear();
    s.pending.fill(0);
    s.reading = s.guessed = false;
    --reading_;
    --guesses_reading_;
    if (s.staging >= 0) free_staging_.push_back(std::exchange(s.staging, -1));
    prefetcher_.dropped(key);
    cache_.unpin(index);
    cache_.discard(index);
  }
}

void ExpertStore::pump() {
  take_landed(queue_.poll());
  if (!source_parts_.empty()) start_source_reads();
  if (layer_ >= 0) start_waiting();
  read_ahead();
  start_guesses();
  queue_.submit();
}

// The wave before has unpacked or checked them.
void ExpertStore::finish_unpacking() {
  // settle() looks whether any part of a slot is still being unpacked.
  while (!unpacking_.empty()) {
    const SlotPart done = unpacking_.back();
    unpacking_.pop_back();
    if (done.check)
      checked(done);
    else
      slot(done.slot).ready[static_cast<size_t>(done.part)] = !slot(done.slot).failed;
    settle(done.slot);
  }
}

void ExpertStore::retire(std::vector<int32_t>& demands) {
  for (const int32_t demand : demands) {
    const int32_t index = demands_[static_cast<size_t>(demand)].slot;
    if (demands_[static_cast<size_t>(demand)].passing) --passing_;
    cache_.unpin(index);
    // What could not be read is not kept. While the kernel holds it, it stays pinned.
    const Slot& s = slot(index);
    if (s.failed && !s.reading && cache_.pins(index) == 0) cache_.discard(index);
  }
  demands.clear();
}

void ExpertStore::next_wave(ExpertWave& wave) {
  wave.unpack.clear();
  wave.check.clear();
  wave.activate.clear();
  wave.down.clear();
  wave.failed.clear();
  wave.first = std::exchange(first_wave_, false);
  finish_unpacking();
  retire(retiring_);
  std::swap(retiring_, given_);
  while (true) {
    pump();
    if (options_.overlap || reading_ == 0 || !raw_.empty()) collect(wave);
    const bool found = !wave.unpack.empty() || !wave.check.empty() || !wave.activate.empty() ||
                       !wave.down.empty() || !wave.failed.empty();
    wave.last = unfinished_ == 0;
    // An empty wave lets go of what the last one held.
    if (found || wave.last || wave.first || !retiring_.empty()) return;
    await_reads();
  }
}

void ExpertStore::await_reads() {
  const trace::Scope scope(trace::Kind::kWait, "disk");
  CHECK(reading_ > 0);
  const auto begin = steady_clock::now();
  take_landed(queue_.wait(kWaitStep));
  step_stall_ns_ += (steady_clock::now() - begin).count();
}

// What has landed and is not as kernels want it yet, or may not be what was written.
void ExpertStore::collect_raw(ExpertWave& wave) {
  for (SlotPart& raw : raw_) {
    Slot& s = slot(raw.slot);
    if (s.failed) continue;
    if (raw.check) {
      raw.found = static_cast<int32_t>(wave.check.size());
      const auto bytes = catalogue_.layer(s.key.layer).part_bytes[static_cast<size_t>(raw.part)];
      wave.check.push_back(
          {.bytes = {part_memory(s, raw.part), bytes}, .found = &found_crc_[wave.check.size()]});
    } else {
      wave.unpack.push_back({.layer = s.key.layer,
                             .expert = s.key.expert,
                             .part = raw.part,
                             .staged = staged(s, raw.part),
                             .slot = part_memory(s, raw.part)});
      stats_.unpacked.add();
    }
    unpacking_.push_back(raw);
  }
  raw_.clear();
}

// Everything that can be computed once the parts that have landed are unpacked. Those that are
// checked have to wait for the next wave: nobody computes with what may be wrong.
void ExpertStore::collect(ExpertWave& wave) {
  collect_raw(wave);
  const auto there = [this](const Demand& demand, int32_t part) {
    return slot(demand.slot).ready[static_cast<size_t>(part)] ||
           std::ranges::any_of(unpacking_, [&](const SlotPart& u) {
             return u.slot == demand.slot && u.part == part && !u.check;
           });
  };
  for (size_t i = 0; i < asked_.size(); ++i) {
    Demand& demand = demands_[i];
    if (demand.state != State::kHeld && demand.state != State::kActivated) continue;
    if (slot(demand.slot).failed) {
      fail_demand(static_cast<int32_t>(i), wave);
      continue;
    }
    if (demand.state == State::kHeld && there(demand, 0)) {
      demand.state = State::kActivated;
      wave.activate.push_back(static_cast<int32_t>(i));
    }
    if (demand.state != State::kActivated || !there(demand, 1)) continue;
    demand.state = State::kDone;
    wave.down.push_back(static_cast<int32_t>(i));
    given_.push_back(static_cast<int32_t>(i));
    --unfinished_;
  }
}

void ExpertStore::fail_demand(int32_t demand, ExpertWave& wave) {
  Demand& d = demands_[static_cast<size_t>(demand)];
  d.state = State::kDone;
  failures_[static_cast<size_t>(demand)] = slot(d.slot).failure;
  wave.failed.push_back(demand);
  given_.push_back(demand);
  --unfinished_;
}

void ExpertStore::end_layer() {
  CHECK(unfinished_ == 0);
  finish_unpacking();
  retire(retiring_);
  retire(given_);
  cache_.layer_done(layer_);
  layer_ = -1;
  asked_ = {};
  order_.clear();
  next_waiting_ = 0;
  pump();
}

}  // namespace weir::ssd
