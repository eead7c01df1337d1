#include "ssd/calibration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "base/check.h"
#include "base/file.h"
#include "base/huge_pages.h"
#include "base/json.h"

namespace weir::ssd {

namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr uint64_t kFileBytesMin = uint64_t{64} << 20;
constexpr double kPlateau = 0.95;
// A disk that completes bursts together is given a smaller window, so that something lands earlier:
// the smallest at which it still gives this.
constexpr double kPlateauTogether = 0.9;
constexpr double kTogether = 0.8;
constexpr int kBurstReads = 6;
constexpr int kBursts = 9;
// Each window has its time in so many stretches, all windows in turn: a shared disk's speed changes
// from one second to the next.
constexpr int kRounds = 3;
constexpr Nanoseconds kPatience = std::chrono::seconds(10);

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// One disk being measured.
class Measurement {
 public:
  static Result<Measurement> prepare(const std::string& path, const CalibrationOptions& options);

  // Bytes a second with this many reads in flight; adds the reads' latencies where asked.
  Result<double> bandwidth(int32_t reads, double time, std::vector<double>* latencies);
  // When the first of a burst lands, as a share of when the last does.
  Result<double> first_of_burst();

  std::string mode() const { return std::string(disk_->mode()); }

 private:
  explicit Measurement(const CalibrationOptions& options)
      : options_(options), random_(options.seed) {}

  bool submit(size_t place);
  // Waits for one answer or more; `places` gets the reads that were answered.
  Result<int32_t> answers(std::array<size_t, 64>& places);

  CalibrationOptions options_;
  std::mt19937_64 random_;
  HugeBuffer memory_;  // Outlives the disk, which waits for its reads when it goes.
  std::unique_ptr<Disk> disk_;
  uint64_t blocks_ = 0;  // Of the file at which a read may begin.
  std::vector<Nanoseconds> begun_;
};

Result<Measurement> Measurement::prepare(const std::string& path,
                                         const CalibrationOptions& options) {
  Measurement made(options);
  WEIR_ASSIGN(made.memory_, HugeBuffer::allocate(std::max<uint64_t>(
                                options.window_bytes_max, kBurstReads * options.read_bytes)));
  std::memset(made.memory_.data(), 1, made.memory_.bytes());  // The kernel gives it now, not later.
  made.begun_.resize(made.memory_.bytes() / options.read_bytes);
  WEIR_ASSIGN(made.disk_, Disk::create({}));
  WEIR_TRY(made.disk_->open_file(path));
  const uint64_t bytes = made.disk_->file_state(0).bytes;
  if (bytes < std::max<uint64_t>(kFileBytesMin, options.read_bytes)) {
    return fail(ErrorCode::kConfig, path + ": expected at least 64 MiB to calibrate by, found " +
                                        std::to_string(bytes) + " bytes");
  }
  made.blocks_ = (bytes - options.read_bytes) / kBlockBytes + 1;
  return made;
}

bool Measurement::submit(size_t place) {
  begun_[place] = disk_->now();
  return disk_->submit({0, options_.read_bytes, random_() % blocks_ * kBlockBytes,
                        memory_.data() + place * options_.read_bytes, place});
}

Result<int32_t> Measurement::answers(std::array<size_t, 64>& places) {
  std::array<DiskDone, 64> done;
  disk_->flush();
  const int32_t count = disk_->wait(done, kPatience);
  if (count == 0)
    return fail(ErrorCode::kIo,
                disk_->path(0) + ": expected reads to complete, found none in 10 s");
  for (int32_t i = 0; i < count; ++i) {
    const DiskDone& one = done[static_cast<size_t>(i)];
    if (one.result != static_cast<int32_t>(options_.read_bytes)) {
      return fail(ErrorCode::kIo, disk_->path(0) + ": expected reads of " +
                                      std::to_string(options_.read_bytes) + " bytes, found: " +
                                      (one.result < 0 ? std::generic_category().message(-one.result)
                                                      : std::to_string(one.result) + " bytes"));
    }
    places[static_cast<size_t>(i)] = one.tag;
  }
  return count;
}

Result<double> Measurement::bandwidth(int32_t reads, double time, std::vector<double>* latencies) {
  std::array<size_t, 64> places;
  for (int32_t place = 0; place < reads; ++place) CHECK(submit(static_cast<size_t>(place)));
  const Nanoseconds begin = disk_->now();
  const auto end = begin + Nanoseconds(static_cast<int64_t>(time * 1e9));
  Nanoseconds now = begin;
  int32_t in_flight = reads;
  double bytes = 0, measured = 0;
  while (in_flight > 0) {
    WEIR_ASSIGN(const int32_t count, answers(places));
    now = disk_->now();
    const bool counts = measured == 0;
    for (int32_t i = 0; i < count; ++i) {
      const size_t place = places[static_cast<size_t>(i)];
      if (latencies && counts) latencies->push_back(seconds(now - begun_[place]));
      if (now < end)
        CHECK(submit(place));
      else
        --in_flight;
    }
    if (counts) bytes += static_cast<double>(count) * options_.read_bytes;
    if (now >= end && counts)
      measured = seconds(now - begin);  // What is left is drained, uncounted.
  }
  return bytes / measured;
}

Result<double> Measurement::first_of_burst() {
  std::array<size_t, 64> places;
  for (size_t place = 0; place < kBurstReads; ++place) CHECK(submit(place));
  const Nanoseconds begin = disk_->now();
  double first = 0;
  int32_t landed = 0;
  while (landed < kBurstReads) {
    WEIR_ASSIGN(const int32_t count, answers(places));
    if (landed == 0) first = seconds(disk_->now() - begin);
    landed += count;
  }
  return first / seconds(disk_->now() - begin);
}

Result<void> check_options(const CalibrationOptions& o) {
  const bool good = o.read_bytes > 0 && o.read_bytes % kBlockBytes == 0 &&
                    o.seconds_per_window > 0 && o.window_bytes_min >= o.read_bytes &&
                    o.window_bytes_max >= o.window_bytes_min &&
                    o.window_bytes_max / o.read_bytes <= static_cast<uint64_t>(DiskOptions().depth);
  if (good) return {};
  return fail(ErrorCode::kConfig,
              "calibration: expected reads of whole blocks and windows of 1 to 256 reads, found "
              "reads of " +
                  std::to_string(o.read_bytes) + " bytes and windows of " +
                  std::to_string(o.window_bytes_min) + " to " + std::to_string(o.window_bytes_max));
}

// The smallest window that gives this share of the best.
const Calibration::Point& smallest(const std::vector<Calibration::Point>& sweep, double share) {
  double best = 0;
  for (const auto& point : sweep) best = std::max(best, point.bytes_per_second);
  for (const auto& point : sweep)
    if (point.bytes_per_second >= share * best) return point;
  CHECK(false);
}

}  // namespace

Result<Calibration> calibrate(const std::string& path, const CalibrationOptions& options) {
  WEIR_TRY(check_options(options));
  WEIR_ASSIGN(Measurement disk, Measurement::prepare(path, options));
  Calibration result;
  for (uint64_t window = options.window_bytes_min; window <= options.window_bytes_max; window *= 2)
    result.sweep.push_back({window, 0});

  std::vector<std::vector<double>> rates(result.sweep.size());
  std::vector<double> latencies, firsts;
  const double stretch = options.seconds_per_window / kRounds;
  for (int round = 0; round < kRounds; ++round) {
    WEIR_TRY(disk.bandwidth(1, stretch, &latencies));
    for (size_t i = 0; i < result.sweep.size(); ++i) {
      const auto reads = static_cast<int32_t>(result.sweep[i].window_bytes / options.read_bytes);
      WEIR_ASSIGN(const double rate, disk.bandwidth(reads, stretch, nullptr));
      rates[i].push_back(rate);
    }
  }
  for (size_t i = 0; i < rates.size(); ++i) result.sweep[i].bytes_per_second = median(rates[i]);
  for (int burst = 0; burst < kBursts; ++burst) {
    WEIR_ASSIGN(const double first, disk.first_of_burst());
    firsts.push_back(first);
  }
  result.mode = disk.mode();
  result.latency_seconds = median(latencies);
  result.completes_together = median(firsts) > kTogether;
  const auto& chosen =
      smallest(result.sweep, result.completes_together ? kPlateauTogether : kPlateau);
  result.window_bytes = chosen.window_bytes;
  result.bytes_per_second = chosen.bytes_per_second;
  return result;
}

QueueLimits limits_for(const Calibration& calibration) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  // A calibration waits in the kernel and answers at once; the engine looks between two tiles,
  // every 100 to 200 us. With 1 to 2 MiB in flight the disk was idle meanwhile (88 to 92 % of its
  // rate), with 4 MiB it was not (96 to 98 %), at a fifth less CPU a GB.
  constexpr uint64_t kWindowBytesMin = 4 * kMiB;
  QueueLimits limits;
  limits.demand_window_bytes = std::max<uint64_t>(calibration.window_bytes, kWindowBytesMin);
  // 1 ms of the disk: what speculation may add to the wait of a demand read.
  limits.speculative_window_bytes =
      std::max<uint64_t>(static_cast<uint64_t>(calibration.bytes_per_second / 1000), kMiB);
  return limits;
}

std::string to_json(const Calibration& calibration) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.field("version", 1);
  json.field("mode", std::string_view(calibration.mode));
  json.field("bytes_per_second", calibration.bytes_per_second);
  json.field("window_bytes", calibration.window_bytes);
  json.field("latency_seconds", calibration.latency_seconds);
  json.field("completes_together", calibration.completes_together);
  json.key("sweep").begin_array();
  for (const Calibration::Point& point : calibration.sweep) {
    json.begin_object();
    json.field("window_bytes", point.window_bytes);
    json.field("bytes_per_second", point.bytes_per_second);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  text += '\n';
  return text;
}

namespace {

// A member that is a number above 0 and no disk's excess.
bool positive(JsonObject object, const char* key, double max, double& out) {
  return object.at_key(key).get(out) == simdjson::SUCCESS && std::isfinite(out) && out > 0 &&
         out <= max;
}

}  // namespace

Result<Calibration> calibration_from_json(std::string_view text) {
  constexpr double kRateMax = 1e13, kWindowMax = 1e12, kLatencyMax = 100;
  const auto wrong = [](const char* what) {
    return fail(ErrorCode::kConfig,
                std::string("calibration: expected ") + what + ", found something else");
  };
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(text, 8));
  JsonObject object;
  JsonArray sweep;
  Calibration result;
  double window = 0;
  int64_t version = 0;
  std::string_view mode;
  if (doc.root().get(object) != simdjson::SUCCESS) return wrong("an object");
  if (object.at_key("version").get(version) != simdjson::SUCCESS || version != 1)
    return wrong("version 1");
  if (object.at_key("mode").get(mode) != simdjson::SUCCESS) return wrong("a mode");
  if (!positive(object, "bytes_per_second", kRateMax, result.bytes_per_second) ||
      !positive(object, "window_bytes", kWindowMax, window) ||
      !positive(object, "latency_seconds", kLatencyMax, result.latency_seconds))
    return wrong("figures of a disk");
  if (object.at_key("completes_together").get(result.completes_together) != simdjson::SUCCESS ||
      object.at_key("sweep").get(sweep) != simdjson::SUCCESS)
    return wrong("completes_together and a sweep");
  result.mode = mode;
  result.window_bytes = static_cast<uint64_t>(window);
  for (const JsonValue entry : sweep) {
    JsonObject point;
    double bytes = 0, rate = 0;
    if (entry.get(point) != simdjson::SUCCESS ||
        !positive(point, "window_bytes", kWindowMax, bytes) ||
        !positive(point, "bytes_per_second", kRateMax, rate))
      return wrong("points of a sweep");
    result.sweep.push_back({static_cast<uint64_t>(bytes), rate});
  }
  return result;
}

Result<std::string> calibration_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return fail(ErrorCode::kIo,
                path + ": expected a file, found: " + std::generic_category().message(errno));
  std::string folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && cache[0] == '/') {
    folder = cache;
  } else if (const char* home = std::getenv("HOME"); home && home[0] == '/') {
    folder = std::string(home) + "/.cache";
  } else {
    return fail(ErrorCode::kConfig,
                "expected XDG_CACHE_HOME or HOME to name a folder, found neither");
  }
  return folder + "/weir/disk-" + std::to_string(major(found.st_dev)) + "-" +
         std::to_string(minor(found.st_dev)) + ".json";
}

Result<void> save_calibration(const std::string& path, const Calibration& calibration) {
  WEIR_ASSIGN(const std::string file, calibration_file(path));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  // Written beside it and renamed, so that no process reads half of it.
  std::string temporary = file + ".XXXXXX";
  const int fd = error ? -1 : ::mkostemp(temporary.data(), O_CLOEXEC);
  const std::string text = to_json(calibration);
  bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) written = ::close(fd) == 0 && written;
  if (written && ::rename(temporary.c_str(), file.c_str()) == 0) return {};
  const int reason = error ? error.value() : errno;
  if (fd >= 0) ::unlink(temporary.c_str());
  return fail(ErrorCode::kIo, file + ": expected to write the calibration, found: " +
                                  std::generic_category().message(reason));
}

std::optional<Calibration> load_calibration(const std::string& path) {
  constexpr size_t kTextMax = 64 << 10;
  const Result<std::string> file = calibration_file(path);
  if (!file) return std::nullopt;
  const Result<std::string> text = read_file(*file, kTextMax);
  if (!text) return std::nullopt;
  Result<Calibration> calibration = calibration_from_json(*text);
  if (!calibration) return std::nullopt;
  return std::move(*calibration);
}

}  // namespace weir::ssd
