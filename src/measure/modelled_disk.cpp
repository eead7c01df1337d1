#include "measure/modelled_disk.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/check.h"

namespace weir::measure {

using Nanoseconds = std::chrono::nanoseconds;

ModelledDisk::ModelledDisk(const DiskModel& model) : model_(model) {
  CHECK(model.bytes_per_second > 0 && model.completed_together > 0);
}

ModelledDisk::File& ModelledDisk::at(int32_t file) {
  CHECK(file >= 0 && static_cast<size_t>(file) < files_.size());
  return files_[static_cast<size_t>(file)];
}

const ModelledDisk::File& ModelledDisk::at(int32_t file) const {
  CHECK(file >= 0 && static_cast<size_t>(file) < files_.size());
  return files_[static_cast<size_t>(file)];
}

Result<int32_t> ModelledDisk::open_file(const std::string& path) {
  WEIR_ASSIGN(const int32_t opened, table_.open(path, false));
  const int fd = table_.fd(opened);
  return add_file(path, table_.state(opened).bytes, [fd](uint64_t offset, auto out) {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
      if (got <= 0) return;  // Its owner has cut it meanwhile.
      offset += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
  });
}

int32_t ModelledDisk::add_file(std::string name, uint64_t bytes, Contents contents) {
  File file;
  file.name = std::move(name);
  file.bytes = file.opened_bytes = bytes;
  file.contents = std::move(contents);
  files_.push_back(std::move(file));
  return static_cast<int32_t>(files_.size()) - 1;
}

void ModelledDisk::add_fault(const DiskFault& fault) { faults_.push_back(fault); }

void ModelledDisk::release_stalls() {
  for (Flight& flight : flights_)
    if (flight.end == Nanoseconds::max()) flight.end = now();
}

void ModelledDisk::truncate(int32_t file, uint64_t bytes) {
  at(file).bytes = bytes;
  at(file).change = FileChange::kTruncated;
}

void ModelledDisk::set_change(int32_t file, FileChange change) { at(file).change = change; }

void ModelledDisk::refuse_direct(int32_t file) { at(file).refuses_direct = true; }

void ModelledDisk::advance(Nanoseconds time) {
  CHECK(!model_.real_time);
  clock_ += time;
}

bool ModelledDisk::submit(const ssd::DiskRead& read) {
  if (in_flight() >= model_.depth) return false;
  CHECK(read.offset % ssd::kBlockBytes == 0 && read.bytes % ssd::kBlockBytes == 0 &&
        read.bytes > 0);
  if (flights_.empty()) submissions_ = 0;  // A new burst, a new group.
  const auto transfer =
      Nanoseconds(static_cast<int64_t>(read.bytes / model_.bytes_per_second * 1e9));
  transfer_end_ = std::max(transfer_end_, now()) + transfer;
  Flight flight{read, transfer_end_ + model_.latency,
                submissions_++ / static_cast<uint64_t>(model_.completed_together),
                take_fault(read)};
  if (flight.fault && flight.fault->kind == DiskFault::Kind::kStall) {
    const Nanoseconds delay = flight.fault->delay;
    flight.end = delay == Nanoseconds::max() ? delay : flight.end + delay;
  }
  flights_.push_back(std::move(flight));
  submitted_.push_back(read);
  return true;
}

std::optional<DiskFault> ModelledDisk::take_fault(const ssd::DiskRead& read) {
  if (at(read.file).direct && at(read.file).refuses_direct) {
    DiskFault refusal;
    refusal.error = EINVAL;
    return refusal;
  }
  for (DiskFault& fault : faults_) {
    const bool touches = fault.file == read.file && read.offset < fault.end &&
                         read.offset + read.bytes > fault.begin;
    if (!touches || fault.times == 0) continue;
    if (fault.times > 0) --fault.times;
    return fault;
  }
  return std::nullopt;
}

// When its completion can be seen: when the last of its group has ended. A stall is the read's own.
Nanoseconds ModelledDisk::visible_at(const Flight& flight) const {
  Nanoseconds end = flight.end;
  for (const Flight& other : flights_) {
    if (other.group == flight.group && other.end != Nanoseconds::max())
      end = std::max(end, other.end);
  }
  return end;
}

int32_t ModelledDisk::finish(const Flight& flight) {
  const ssd::DiskRead& read = flight.read;
  File& file = at(read.file);
  if (flight.fault && flight.fault->kind == DiskFault::Kind::kError) return -flight.fault->error;
  uint64_t bytes =
      read.offset >= file.bytes ? 0 : std::min<uint64_t>(read.bytes, file.bytes - read.offset);
  if (flight.fault && flight.fault->kind == DiskFault::Kind::kShort)
    bytes = std::min<uint64_t>(bytes, flight.fault->bytes);
  file.contents(read.offset, {read.to, bytes});
  return static_cast<int32_t>(bytes);
}

int32_t ModelledDisk::poll(std::span<ssd::DiskDone> out) {
  const Nanoseconds time = now();
  // Chosen before any is taken out: a group stays whole while it is looked at.
  std::vector<std::pair<Nanoseconds, size_t>> ready;
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (visible_at(flights_[i]) <= time) ready.emplace_back(flights_[i].end, i);
  }
  std::ranges::stable_sort(ready);
  ready.resize(std::min(ready.size(), out.size()));
  std::vector<bool> gone(flights_.size());
  for (size_t i = 0; i < ready.size(); ++i) {
    const Flight& flight = flights_[ready[i].second];
    out[i] = {flight.read.tag, finish(flight)};
    gone[ready[i].second] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) flights_[kept] = std::move(flights_[i]);
    ++kept;
  }
  flights_.resize(kept);
  return static_cast<int32_t>(ready.size());
}

int32_t ModelledDisk::wait(std::span<ssd::DiskDone> out, Nanoseconds timeout) {
  const Nanoseconds begin = now();
  Nanoseconds next = begin + std::max(timeout, Nanoseconds(0));
  for (const Flight& flight : flights_) next = std::min(next, visible_at(flight));
  next = std::max(next, begin);
  if (model_.real_time)
    std::this_thread::sleep_for(next - begin);
  else
    clock_ = next;
  return poll(out);
}

bool ModelledDisk::leave_direct(int32_t file) { return std::exchange(at(file).direct, false); }

const std::string& ModelledDisk::path(int32_t file) const { return at(file).name; }

FileState ModelledDisk::file_state(int32_t file) const {
  const File& f = at(file);
  return {f.change, f.bytes, f.opened_bytes};
}

Nanoseconds ModelledDisk::now() const { return model_.real_time ? ssd::Disk::now() : clock_; }

}  // namespace weir::measure
