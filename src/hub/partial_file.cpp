#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/concat.h"
#include "base/file.h"
#include "base/json.h"

namespace weir::hub {

namespace {

// Of a file with a gap between any two of its parts: more than any list of ours.
constexpr size_t kListBytesMax = size_t{16} << 20;
// So much is written to the disk in the background at a time, that a sync has little left to do.
constexpr uint64_t kWriteBackBytes = uint64_t{16} << 20;

tl::unexpected<Error> io_error(const std::string& path, const char* what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return fail(full ? ErrorCode::kCapacity : ErrorCode::kIo,
              concat({path, ": ", what, ": ", std::generic_category().message(error)}));
}

// Of this start of the machine; empty where the kernel does not tell.
std::string boot_id() {
  const Result<std::string> text = read_file("/proc/sys/kernel/random/boot_id", 100);
  return text ? text->substr(0, text->find('\n')) : "";
}

struct List {
  uint64_t size = 0;
  std::string boot;
  ByteRanges written, synced;
};

std::optional<ByteRanges> read_ranges(JsonObject object, const char* key, uint64_t size) {
  const std::optional<JsonValue> value = json_get(object, key);
  JsonArray pairs;
  if (!value || value->get(pairs) != simdjson::SUCCESS) return std::nullopt;
  ByteRanges ranges;
  for (const JsonValue pair : pairs) {
    ByteRange range;
    if (pair.at(0).get(range.begin) != simdjson::SUCCESS ||
        pair.at(1).get(range.end) != simdjson::SUCCESS || range.begin >= range.end ||
        range.end > size)
      return std::nullopt;
    ranges.add(range);
  }
  return ranges;
}

// A list that says anything strange is as none.
std::optional<List> read_list_file(const std::string& path) {
  const Result<std::string> text = read_file(path, kListBytesMax);
  if (!text) return std::nullopt;
  const Result<JsonDoc> doc = JsonDoc::parse(*text, 8);
  JsonObject root;
  if (!doc || doc->root().get(root) != simdjson::SUCCESS) return std::nullopt;
  List list;
  const std::optional<JsonValue> size = json_get(root, "size"), boot = json_get(root, "boot");
  std::string_view boot_text;
  if (!size || size->get(list.size) != simdjson::SUCCESS || !boot ||
      boot->get(boot_text) != simdjson::SUCCESS)
    return std::nullopt;
  list.boot = boot_text;
  std::optional<ByteRanges> written = read_ranges(root, "written", list.size);
  std::optional<ByteRanges> synced = read_ranges(root, "synced", list.size);
  if (!written || !synced) return std::nullopt;
  list.written = std::move(*written);
  list.synced = std::move(*synced);
  return list;
}

void write_ranges(JsonWriter& json, const char* key, const ByteRanges& ranges) {
  json.key(key).begin_array();
  for (const ByteRange& range : ranges.ranges())
    json.begin_array().value(range.begin).value(range.end).end_array();
  json.end_array();
}

// By a name of its own and a rename, so that there is always a whole list or none.
Result<void> write_list_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const FileHandle file(
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) return io_error(part, "cannot be written", errno);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(part, "cannot be written", errno);
    done += static_cast<size_t>(count);
  }
  if (std::rename(part.c_str(), path.c_str()) != 0)
    return io_error(path, "cannot be replaced", errno);
  return {};
}

Result<void> make_folder_of(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return io_error(path, "its folder cannot be made", error.value());
  return {};
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() >= 0) (void)::fsync(handle.get());
}

}  // namespace

PartialFile::PartialFile(std::string path, const TreeFile& file, FileHandle lock, FileHandle data)
    : path_(std::move(path)),
      blob_(file.blob),
      size_(static_cast<uint64_t>(file.size)),
      lock_(std::move(lock)),
      data_(std::move(data)) {
  hash_.emplace(blob_, file.size);
}

Result<void> PartialFile::failed(const char* what) const {
  return io_error(path_ + ".weir", what, errno);
}

Result<std::optional<PartialFile>> PartialFile::open(const std::string& path,
                                                     const std::string& lock_path,
                                                     const TreeFile& file) {
  WEIR_TRY(make_folder_of(lock_path));
  WEIR_TRY(make_folder_of(path));
  FileHandle lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (lock.get() < 0) return io_error(lock_path, "cannot be opened", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    return io_error(lock_path, "cannot be locked", errno);
  }
  const std::string data_path = path + ".weir";
  FileHandle data(::open(data_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  struct stat info {};
  if (data.get() < 0 || ::fstat(data.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return io_error(data_path, "cannot be written", data.get() < 0 ? errno : EINVAL);
  PartialFile partial(path, file, std::move(lock), std::move(data));
  partial.read_list();
  // A file that is shorter than its list says has lost what is missing.
  if (info.st_size != file.size) {
    partial.written_.clear();
    partial.synced_.clear();
    if (::ftruncate(partial.data_.get(), 0) != 0 ||
        ::ftruncate(partial.data_.get(), file.size) != 0)
      return tl::unexpected(partial.failed("cannot be made as long as it is to be").error());
  }
  return partial;
}

void PartialFile::read_list() {
  const std::optional<List> list = read_list_file(path_ + ".weir.json");
  if (!list || list->size != size_) return;
  const std::string boot = boot_id();
  written_ = !boot.empty() && list->boot == boot ? list->written : list->synced;
  synced_ = list->synced;
}

Result<void> PartialFile::write(uint64_t offset, std::string_view bytes) {
  const ByteRange range{offset, offset + bytes.size()};
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pwrite(data_.get(), bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("cannot be written");
    done += static_cast<size_t>(count);
  }
  written_.add(range);
  if (hashed_ == range.begin) {  // The front of the file, while it is in the cache.
    hash_->add(bytes);
    hashed_ = range.end;
  }
  sent_to_disk_ += bytes.size();
  if (sent_to_disk_ >= kWriteBackBytes) {
    sent_to_disk_ = 0;
    (void)::sync_file_range(data_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  return {};
}

Result<void> PartialFile::save() {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("size", size_).field("boot", boot_id());
  write_ranges(json, "written", written_);
  write_ranges(json, "synced", synced_);
  json.end_object();
  return write_list_file(path_ + ".weir.json", text);
}

Result<void> PartialFile::sync() {
  if (synced_.bytes() == written_.bytes()) return {};
  const ByteRanges before = written_;
  if (::fdatasync(data_.get()) != 0) return failed("cannot be brought to the disk");
  synced_ = before;
  return save();
}

void PartialFile::discard() {
  (void)::unlink((path_ + ".weir").c_str());
  (void)::unlink((path_ + ".weir.json").c_str());
}

// As if nothing had been written.
void PartialFile::restart() {
  written_.clear();
  synced_.clear();
  hash_.emplace(blob_, static_cast<int64_t>(size_));
  hashed_ = 0;
}

Result<bool> PartialFile::hash(uint64_t bytes) {
  constexpr size_t kPieceBytes = 1 << 20;
  std::string piece;
  const uint64_t end = std::min(written_.front(), hashed_ + bytes);
  while (hashed_ < end) {
    piece.resize(std::min<uint64_t>(kPieceBytes, end - hashed_));
    const ssize_t count =
        ::pread(data_.get(), piece.data(), piece.size(), static_cast<off_t>(hashed_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = EIO;  // Another has cut it.
      return tl::unexpected(failed("cannot be read").error());
    }
    hash_->add({piece.data(), static_cast<size_t>(count)});
    hashed_ += static_cast<uint64_t>(count);
  }
  return hashed_ == size_;
}

Result<bool> PartialFile::finish(std::string& found) {
  found = hash_->finish();
  const std::string data_path = path_ + ".weir", list_path = path_ + ".weir.json";
  if (found != blob_) {
    restart();
    (void)::unlink(list_path.c_str());
    if (::ftruncate(data_.get(), 0) != 0 ||
        ::ftruncate(data_.get(), static_cast<off_t>(size_)) != 0)
      return tl::unexpected(failed("cannot be emptied").error());
    return false;
  }
  if (::fsync(data_.get()) != 0)
    return tl::unexpected(failed("cannot be brought to the disk").error());
  if (std::rename(data_path.c_str(), path_.c_str()) != 0)
    return io_error(path_, "cannot be given its name", errno);
  (void)::unlink(list_path.c_str());
  sync_folder_of(path_);
  return true;
}

int64_t partial_bytes(const std::string& path) {
  const std::optional<List> list = read_list_file(path + ".weir.json");
  return list ? static_cast<int64_t>(list->written.bytes()) : 0;
}

}  // namespace weir::hub
