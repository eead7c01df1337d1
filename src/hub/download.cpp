#include "hub/download.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "base/byte_size.h"
#include "base/concat.h"
#include "hub/fetcher.h"
#include "hub/partial_file.h"

namespace weir::hub {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Parts of large files: a few seconds each on a fast line, so that connections end together.
constexpr uint64_t kPartBytesMax = uint64_t{64} << 20;
constexpr uint64_t kPartBytesMin = uint64_t{1} << 20;
// Of smaller files so many parts that all connections have work to their end.
constexpr uint64_t kPartsWanted = 16;
// Hashed between two looks at the network: 5 ms.
constexpr uint64_t kHashTurnBytes = uint64_t{8} << 20;
constexpr milliseconds kTurn{100};
constexpr milliseconds kReportTime{100};
constexpr seconds kSaveTime{1}, kSyncTime{10};
// How often a file that another process fetches is looked at.
constexpr seconds kLockTime{1};

std::optional<int64_t> size_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_size;
}

uint64_t part_bytes(uint64_t size) {
  const uint64_t even = (size / kPartsWanted / kPartBytesMin + 1) * kPartBytesMin;
  return std::min(even, kPartBytesMax);
}

// A blob that is missing: queued, then active, then done.
struct Job {
  const TreeFile* file = nullptr;
  std::optional<PartialFile> partial;  // While it is active.
  std::deque<ByteRange> parts;         // That no connection has yet.
  size_t fetching = 0;
  bool done = false;
  bool read_whole = false;  // Its server ignores ranges.
  bool wrong_once = false;
  steady_clock::time_point locked_until;  // By another process, as far as is known.
  int64_t bytes_then = 0;                 // Of it, when the download began.
};

class Download final : public Fetcher::Sink {
 public:
  Download(Client& client, const Cache& cache, const HubModel& model,
           const DownloadOptions& options)
      : client_(client),
        cache_(cache),
        model_(model),
        options_(options),
        fetcher_(client, model, *this) {}

  Result<Snapshot> run();
  Result<void> take(size_t key, uint64_t offset, std::string_view bytes) override {
    return jobs_[key].partial->write(offset, bytes);
  }

 private:
  void find_jobs();
  Result<void> check_disk() const;
  Result<void> fill();
  Result<bool> open(size_t key);
  void cut(Job& job) const;
  Result<void> work();
  Result<void> finish(Job& job);
  Result<void> save_some();
  Result<void> save_all();
  void report(bool last);

  Client& client_;
  const Cache& cache_;
  const HubModel& model_;
  const DownloadOptions& options_;
  std::deque<Job> jobs_;  // Small files first. The fetcher's keys.
  Fetcher fetcher_;
  Progress progress_;
  steady_clock::time_point reported_, saved_, synced_;
  std::string others_;  // Why no job can be begun.
};

// Files with the same bytes are one blob.
void Download::find_jobs() {
  std::set<std::string> seen;
  std::vector<const TreeFile*> files;
  for (const TreeFile& file : model_.files)
    if (seen.insert(file.blob).second) files.push_back(&file);
  std::ranges::stable_sort(files, {}, [](const TreeFile* file) { return file->size; });
  progress_.files = files.size();
  for (const TreeFile* file : files) {
    const std::string path = cache_.blob_path(model_.name.id, file->blob);
    progress_.bytes += file->size;
    if (size_of(path) == file->size) {
      ++progress_.files_done;
      progress_.bytes_here += file->size;
      continue;
    }
    Job job;
    job.file = file;
    job.bytes_then = std::min(partial_bytes(path), file->size);
    progress_.bytes_here += job.bytes_then;
    jobs_.push_back(std::move(job));
  }
}

Result<void> Download::check_disk() const {
  const std::string folder = cache_.model_folder(model_.name.id);
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return fail(
        ErrorCode::kIo,
        concat({folder, ": cannot be looked at: ", std::generic_category().message(errno)}));
  int64_t need = 0;
  for (const Job& job : jobs_) need += job.file->size - job.bytes_then;
  const auto free = static_cast<int64_t>(uint64_t{disk.f_bavail} * disk.f_frsize);
  if (need == 0 || free >= need + options_.disk_reserve) return {};
  return fail(ErrorCode::kCapacity,
              concat({cache_.folder(), ": expected ", human_bytes(need + options_.disk_reserve),
                      " free on this disk (", human_bytes(need), " to be fetched, ",
                      human_bytes(options_.disk_reserve),
                      " to be left, see --disk-reserve); found ", human_bytes(free)}));
}

void Download::cut(Job& job) const {
  const auto size = static_cast<uint64_t>(job.file->size);
  job.parts.clear();
  const std::vector<ByteRange> gaps = job.partial->written().gaps(size);
  if (job.read_whole) {  // One answer that is read from the first gap on.
    if (!gaps.empty()) job.parts.push_back({gaps[0].begin, size});
    return;
  }
  const uint64_t most = part_bytes(size);
  for (const ByteRange& gap : gaps)
    for (uint64_t at = gap.begin; at < gap.end; at += most)
      job.parts.push_back({at, std::min(at + most, gap.end)});
}

// True: the job has begun, or needs no more. False: another process is at it.
Result<bool> Download::open(size_t key) {
  Job& job = jobs_[key];
  const std::string path = cache_.blob_path(model_.name.id, job.file->blob);
  WEIR_ASSIGN(job.partial,
              PartialFile::open(path, cache_.lock_path(model_.name.id, job.file->blob), *job.file));
  if (!job.partial) {
    job.locked_until = client_.transport().now() + kLockTime;
    return false;
  }
  if (size_of(path) == job.file->size) {  // Which has finished it.
    job.partial->discard();
    job.partial.reset();
    job.done = true;
    ++progress_.files_done;
    return true;
  }
  if (const std::string* kept = client_.fetched(job.file->blob))
    WEIR_TRY(job.partial->write(0, *kept));
  cut(job);
  return true;
}

// Gives each free connection a part: of files that have begun, then of the next.
Result<void> Download::fill() {
  others_.clear();
  for (size_t key = 0; key < jobs_.size() && fetcher_.open() < options_.connections; ++key) {
    Job& job = jobs_[key];
    if (job.done) continue;
    if (client_.transport().now() < job.locked_until) {
      others_ = job.file->path + " is being fetched by another process";
      continue;
    }
    if (!job.partial) {
      WEIR_ASSIGN(const bool begun, open(key));
      if (!begun || job.done) continue;
    }
    while (!job.parts.empty() && fetcher_.open() < options_.connections) {
      fetcher_.add(
          {.key = key, .file = job.file, .range = job.parts.front(), .from_whole = job.read_whole});
      job.parts.pop_front();
      ++job.fetching;
    }
  }
  return {};
}

Result<void> Download::work() {
  WEIR_TRY(fill());
  bool hashing = false;
  for (const Job& job : jobs_)
    hashing = hashing || (job.partial && job.partial->hashed() < job.partial->written().front());
  WEIR_ASSIGN(const std::vector<Fetcher::Piece> whole,
              fetcher_.run(hashing ? milliseconds(0) : kTurn));
  for (const Fetcher::Piece& piece : whole) {
    --jobs_[piece.key].fetching;
    WEIR_TRY(jobs_[piece.key].partial->save());
  }
  for (const size_t key : fetcher_.ignoring_ranges()) {
    Job& job = jobs_[key];
    if (job.read_whole) continue;
    fetcher_.drop(key);
    job.fetching = 0;
    job.read_whole = true;
    cut(job);
  }
  for (Job& job : jobs_)
    if (job.partial) WEIR_TRY(finish(job));
  return save_some();
}

Result<void> Download::finish(Job& job) {
  WEIR_ASSIGN(const bool hashed, job.partial->hash(kHashTurnBytes));
  if (!hashed || !job.partial->whole() || job.fetching > 0) return {};
  std::string found;
  WEIR_ASSIGN(const bool right, job.partial->finish(found));
  if (right) {
    job.partial.reset();
    job.done = true;
    ++progress_.files_done;
    return {};
  }
  if (std::exchange(job.wrong_once, true))
    return fail(ErrorCode::kInvalid,
                concat({model_.name.id, "/", job.file->path, ": expected bytes whose hash is ",
                        job.file->blob, ", found ", found, ", twice"}));
  client_.tell(job.file->path + ": the bytes are not those of their hash; fetching them again");
  client_.links().erase(model_.tree.commit + "/" + job.file->path);
  cut(job);
  return {};
}

Result<void> Download::save_some() {
  const auto now = client_.transport().now();
  if (now - saved_ < kSaveTime) return {};
  saved_ = now;
  const bool to_disk = now - synced_ >= kSyncTime;
  if (to_disk) synced_ = now;
  for (Job& job : jobs_)
    if (job.partial) WEIR_TRY(to_disk ? job.partial->sync() : job.partial->save());
  return {};
}

Result<void> Download::save_all() {
  for (Job& job : jobs_)
    if (job.partial) WEIR_TRY(job.partial->save());
  return {};
}

void Download::report(bool last) {
  const auto now = client_.transport().now();
  if (!options_.on_progress || (!last && now - reported_ < kReportTime)) return;
  reported_ = now;
  progress_.bytes_done = progress_.bytes;
  progress_.file.clear();
  for (const Job& job : jobs_) {
    if (job.done) continue;
    const int64_t here =
        job.partial ? static_cast<int64_t>(job.partial->written().bytes()) : job.bytes_then;
    progress_.bytes_done -= job.file->size - here;
    if (job.partial) progress_.file = job.file->path;
  }
  progress_.waiting = fetcher_.open() > 0 ? fetcher_.waiting() : others_;
  options_.on_progress(progress_);
}

Result<Snapshot> Download::run() {
  WEIR_TRY(cache_.begin(model_));
  find_jobs();
  WEIR_TRY(check_disk());
  saved_ = synced_ = client_.transport().now();
  while (!std::ranges::all_of(jobs_, &Job::done)) {
    Result<void> worked = work();
    if (worked && client_.stopped()) worked = fail(ErrorCode::kCancelled, "stopped");
    if (!worked) {
      WEIR_TRY(save_all());
      return tl::unexpected(worked.error());
    }
    report(false);
  }
  WEIR_ASSIGN(Snapshot snapshot, cache_.publish(model_));
  report(true);
  return snapshot;
}

}  // namespace

Result<Snapshot> download(Client& client, const Cache& cache, const HubModel& model,
                          const DownloadOptions& options) {
  return Download(client, cache, model, options).run();
}

int64_t missing_bytes(const Cache& cache, const HubModel& model) {
  std::set<std::string> seen;
  int64_t bytes = 0;
  for (const TreeFile& file : model.files) {
    const std::string path = cache.blob_path(model.name.id, file.blob);
    if (seen.insert(file.blob).second && size_of(path) != file.size)
      bytes += file.size - std::min(partial_bytes(path), file.size);
  }
  return bytes;
}

}  // namespace weir::hub
