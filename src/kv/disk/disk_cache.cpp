#include "kv/disk/disk_cache.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace weir::kv::disk {

namespace {

// A third of the weight of an ordinary thread, as BackgroundThread has it.
constexpr int kNiceness = 5;
// How often a writer that waits for others looks again.
constexpr auto kHoldLook = std::chrono::milliseconds(50);
// A new measurement counts so much of the running mean.
constexpr double kNewShare = 0.25;
// Steps with fewer tokens of prompts say little about how fast those are.
constexpr int32_t kLearnTokens = 64;
// Bytes a second, until something has been read: what a plain SSD gives.
constexpr double kReadRateAssumed = 500e6;

// What was written in the last day, as far as the times of files tell.
int64_t written_today(Files& files, const std::string& folder) {
  constexpr int64_t kDay = 86'400;
  const Result<std::vector<Files::Entry>> entries = files.list(folder);
  int64_t bytes = 0;
  if (!entries) return bytes;
  const int64_t now = std::time(nullptr);
  for (const Files::Entry& entry : *entries)
    if (entry.changed > now - kDay) bytes += static_cast<int64_t>(entry.bytes);
  return bytes;
}

}  // namespace

int32_t loads_at_once(const PageShape& shape) {
  // As many blocks as any window has: a longer text has no more of them.
  constexpr int32_t kLongText = kChainBlocksMax;
  const int64_t sides = std::max<int64_t>(1, shape.side_bytes(kLongText));
  return static_cast<int32_t>(std::clamp<int64_t>(kLoadSideBytesMax / sides, 1, kLoadsMax));
}

// Of blocks of as many bytes as there may be, or of as many as the index takes. An extent of blocks
// without bytes has its head.
int64_t cache_memory(const PageShape& shape, int64_t bytes_max) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t g = 0; g < shape.groups; ++g)
    least = std::min(least, shape.page_bytes[static_cast<size_t>(g)]);
  least = std::max<int64_t>(least, kBlockBytes / kExtentBlocksMax);
  const int64_t blocks = std::min<int64_t>(bytes_max / least + 1, kStoredBlocksMax);
  constexpr int32_t kStoreBuffers = 2;
  return blocks * kIndexBytes + (kWriteBuffers + kStoreBuffers) * extent_bytes_max(shape);
}

Result<std::unique_ptr<DiskCache>> DiskCache::open(const DiskCacheOptions& options,
                                                   std::unique_ptr<Files> files) {
  WEIR_ASSIGN(Folder folder, Folder::open(options.root, options.fingerprint));
  WEIR_TRY(shrink_folders(options.root, options.limits.bytes_max));
  std::unique_ptr<DiskCache> cache(new DiskCache(options, std::move(folder), std::move(files)));
  StoreLimits limits = options.limits;
  limits.sharers = options.open_caches;
  WEIR_ASSIGN(cache->store_, Store::open(cache->folder_.path(), options.fingerprint, options.shape,
                                         limits, *cache->files_, cache->figures_));
  for (Buffer& buffer : cache->buffers_) {
    WEIR_ASSIGN(buffer.bytes,
                HugeBuffer::allocate(static_cast<size_t>(extent_bytes_max(options.shape))));
    CHECK(cache->empty_.try_push(&buffer));
  }
  cache->budget_.emplace(options.write_bytes_a_second, options.write_bytes_a_day,
                         written_today(*cache->files_, cache->folder_.path()), Clock::now());
  DiskCache* const self = cache.get();
  cache->reader_ = std::thread([self] { self->read_main(); });
  cache->writer_ = std::thread([self] { self->write_main(); });
  (void)::pthread_setname_np(cache->reader_.native_handle(), "weir-disk-read");
  (void)::pthread_setname_np(cache->writer_.native_handle(), "weir-disk-write");
  return cache;
}

DiskCache::DiskCache(const DiskCacheOptions& options, Folder folder, std::unique_ptr<Files> files)
    : shape_(options.shape),
      open_caches_(options.open_caches),
      folder_(std::move(folder)),
      files_(std::move(files)) {
  if (open_caches_ != nullptr) ++*open_caches_;
}

DiskCache::~DiskCache() {
  ending_.store(true, std::memory_order_release);
  read_bell_.ring();
  write_bell_.ring();
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
  if (open_caches_ != nullptr) --*open_caches_;
}

std::optional<Store::Found> DiskCache::find(std::span<const PrefixKey> keys,
                                            std::span<const PageSet> in_memory,
                                            std::span<PageSet> wanted) const {
  if (failed()) return Store::Found();
  return store_->find(keys, in_memory, wanted);
}

void DiskCache::learn_prompts(int32_t tokens, double seconds) {
  if (tokens < kLearnTokens || seconds <= 0) return;
  const double rate = tokens / seconds;
  prompt_rate_ = prompt_rate_ == 0 ? rate : prompt_rate_ + kNewShare * (rate - prompt_rate_);
}

bool DiskCache::pays(int64_t bytes, int32_t tokens) const {
  if (prompt_rate_ == 0) return true;
  const double measured = read_bytes_a_second();
  const double rate = measured > 0 ? measured : kReadRateAssumed;
  return static_cast<double>(bytes) / rate < tokens / prompt_rate_;
}

void DiskCache::on_done(std::function<void()> call) {
  const std::lock_guard lock(on_done_mutex_);
  on_done_ = std::move(call);
}

void DiskCache::tell() {
  const std::lock_guard lock(on_done_mutex_);
  if (on_done_) on_done_();
}

void DiskCache::load(Load& load) {
  CHECK(load.wanted.size() == load.keys.size() && load.memory != nullptr);
  load.unwanted.store(false, std::memory_order_relaxed);
  load.done.store(false, std::memory_order_relaxed);
  CHECK(loads_.try_push(&load));
  read_bell_.ring();
}

bool DiskCache::has_buffer() {
  if (failed()) return false;
  if (next_ == nullptr) next_ = empty_.try_pop().value_or(nullptr);
  return next_ != nullptr;
}

DiskCache::Buffer* DiskCache::take_buffer() {
  return has_buffer() ? std::exchange(next_, nullptr) : nullptr;
}

void DiskCache::write(Buffer& buffer) {
  CHECK(full_.try_push(&buffer));
  write_bell_.ring();
}

bool DiskCache::wait_for_buffer(Clock::time_point until) {
  while (next_ == nullptr) {
    const uint32_t bell = empty_bell_.count();
    if (const auto taken = empty_.try_pop()) {
      next_ = *taken;
      break;
    }
    if (Clock::now() >= until) return false;
    empty_bell_.sleep(bell, until);
  }
  return true;
}

void DiskCache::flush(Clock::time_point until) {
  flushing_.store(true, std::memory_order_release);
  write_bell_.ring();
  std::vector<Buffer*> back;
  while (std::ssize(back) < kWriteBuffers && wait_for_buffer(until))
    back.push_back(std::exchange(next_, nullptr));
  for (Buffer* buffer : back) CHECK(empty_.try_push(std::move(buffer)));
}

void DiskCache::read_main() {
  while (true) {
    // Before we look at anything: whatever happens after our look changes the bell.
    const uint32_t bell = read_bell_.count();
    while (const auto load = loads_.try_pop()) {
      run(**load);
      (*load)->done.store(true, std::memory_order_release);
      tell();
    }
    if (ending_.load(std::memory_order_acquire)) return;
    read_bell_.sleep(bell, Clock::time_point::max());
  }
}

void DiskCache::run(Load& load) {
  if (failed()) return;
  const Clock::time_point begin = Clock::now();
  const uint64_t before = figures_.read_bytes.value();
  const Result<void> read = store_->read(
      {load.salt, load.keys, load.tokens}, load.wanted,
      [&load](int32_t block, int32_t group, std::span<const std::byte> bytes) {
        const auto& pages = load.pages[static_cast<size_t>(group)];
        load.memory->copy_in(group, pages[static_cast<size_t>(block)], bytes);
      },
      load.unwanted);
  if (!read) return fail_with(read.error());
  const auto bytes = static_cast<double>(figures_.read_bytes.value() - before);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (bytes == 0 || seconds <= 0) return;
  const double known = read_bytes_a_second(), rate = bytes / seconds;
  read_rate_.store(known == 0 ? rate : known + kNewShare * (rate - known),
                   std::memory_order_relaxed);
}

void DiskCache::write_main() {
  (void)::setpriority(PRIO_PROCESS, 0, kNiceness);  // Of this thread alone, on Linux.
  while (true) {
    const uint32_t bell = write_bell_.count();
    while (!ending_.load(std::memory_order_acquire)) {
      const auto buffer = full_.try_pop();
      if (!buffer) break;
      run(**buffer);
      Buffer* empty = *buffer;
      CHECK(empty_.try_push(std::move(empty)));
      empty_bell_.ring();
      tell();
    }
    if (ending_.load(std::memory_order_acquire)) return;
    write_bell_.sleep(bell, Clock::time_point::max());
  }
}

// Until the rate allows the next write, and others do not need the disk.
void DiskCache::wait_for_turn() {
  while (!ending_.load(std::memory_order_acquire) && !flushing_.load(std::memory_order_acquire)) {
    const uint32_t bell = write_bell_.count();
    const Clock::time_point now = Clock::now();
    if (held_.load(std::memory_order_relaxed)) {
      write_bell_.sleep(bell, now + kHoldLook);
    } else if (now < next_write_) {
      write_bell_.sleep(bell, next_write_);
    } else {
      return;
    }
  }
}

void DiskCache::run(Buffer& buffer) {
  wait_for_turn();
  if (failed()) return;
  const auto bytes = static_cast<int64_t>(buffer.head.bytes(shape_));
  if (!budget_->allows(bytes, Clock::now())) return dropped_bytes_.add(static_cast<uint64_t>(bytes));
  const uint64_t before = figures_.written_bytes.value();
  const Result<bool> written =
      store_->append(buffer.head, {buffer.bytes.data(), buffer.bytes.bytes()});
  if (!written) return fail_with(written.error());
  if (!*written) dropped_bytes_.add(static_cast<uint64_t>(bytes));
  next_write_ =
      budget_->spend(static_cast<int64_t>(figures_.written_bytes.value() - before), Clock::now());
}

void DiskCache::fail_with(const Error& error) {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  log::warn("disk cache is off from now on: " + error.message);
}

}  // namespace weir::kv::disk
