#include "ssd/pread_disk.h"

#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace weir::ssd {

PreadDisk::PreadDisk(const DiskOptions& options)
    : FileDisk(options, "pread x " + std::to_string(options.threads)) {
  const auto depth = static_cast<size_t>(options.depth);
  batch_.reserve(depth);
  taken_.reserve(depth);
  done_.reserve(depth);
  jobs_.resize(depth);
  for (int32_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this] { work(); });
    (void)::pthread_setname_np(threads_.back().native_handle(), "weir-read");
  }
}

PreadDisk::~PreadDisk() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool PreadDisk::submit(const DiskRead& read) {
  if (in_flight_ == options().depth) return false;
  batch_.push_back({read, files().fd(read.file), files().read_flags(read.file)});
  ++in_flight_;
  return true;
}

void PreadDisk::flush() {
  if (batch_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (const Job& job : batch_) jobs_[(first_job_ + job_count_++) % jobs_.size()] = job;
  }
  if (batch_.size() == 1)
    work_ready_.notify_one();
  else
    work_ready_.notify_all();
  batch_.clear();
}

int32_t PreadDisk::read(const Job& job) {
  const CpuScope counted(*this);
  iovec to{job.read.to, job.read.bytes};
  const ssize_t got = ::preadv2(job.fd, &to, 1, static_cast<off_t>(job.read.offset), job.flags);
  return got < 0 ? -errno : static_cast<int32_t>(got);
}

void PreadDisk::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [this] { return stop_ || job_count_ > 0; });
    if (stop_) return;
    const Job job = jobs_[first_job_];
    first_job_ = (first_job_ + 1) % jobs_.size();
    --job_count_;
    lock.unlock();

    const int32_t result = read(job);

    lock.lock();
    done_.push_back({job.read, result});
    if (done_.size() == 1) done_ready_.notify_one();
  }
}

int32_t PreadDisk::take(std::span<DiskDone> out) {
  if (answered_ == taken_.size()) return 0;
  const CpuScope counted(*this);
  size_t count = 0;
  for (; count < out.size() && answered_ < taken_.size(); ++count, ++answered_) {
    const Done& done = taken_[answered_];
    files().drop_behind(done.read.file, done.read.offset, done.read.bytes);
    out[count] = {done.read.tag, done.result};
    --in_flight_;
  }
  return static_cast<int32_t>(count);
}

int32_t PreadDisk::poll(std::span<DiskDone> out) { return wait(out, {}); }

int32_t PreadDisk::wait(std::span<DiskDone> out, std::chrono::nanoseconds timeout) {
  flush();
  if (answered_ == taken_.size()) {
    taken_.clear();
    answered_ = 0;
    std::unique_lock lock(mutex_);
    if (timeout.count() > 0) done_ready_.wait_for(lock, timeout, [this] { return !done_.empty(); });
    std::swap(taken_, done_);
  }
  return take(out);
}

}  // namespace weir::ssd
