#include "ssd/bundle_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "base/crc32c.h"

namespace weir::ssd {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string mib(uint64_t bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
}

bool no_room(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

Result<std::unique_ptr<BundleWriter>> BundleWriter::create(std::string path, ExpertBundle plan,
                                                           uint64_t reserve) {
  std::unique_ptr<BundleWriter> writer(new BundleWriter(std::move(path), std::move(plan)));
  WEIR_TRY(writer->open());
  WEIR_TRY(writer->take_room(reserve));
  return writer;
}

BundleWriter::~BundleWriter() {
  for (const int fd : {fd_, data_})
    if (fd >= 0) ::close(fd);
}

tl::unexpected<Error> BundleWriter::failed(const std::string& what, int error) {
  if (!no_room(error)) return fail(ErrorCode::kIo, part_path_ + ": " + what + ": " + reason(error));
  (void)::unlink(part_path_.c_str());
  return fail(ErrorCode::kCapacity, part_path_ + ": " + what + ": " + reason(error) + " (" +
                                        mib(plan_.head.file_bytes) +
                                        " are needed; what was written has been deleted)");
}

Result<void> BundleWriter::open() {
  fd_ = ::open(part_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd_ < 0) return failed("cannot be written", errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kIo, part_path_ + ": another 'weir pack' is writing it");
  // The process that held it until now may have finished it, and given it its name.
  struct stat held {};
  struct stat named {};
  if (::fstat(fd_, &held) != 0 || ::stat(part_path_.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino)
    return fail(ErrorCode::kIo, part_path_ + ": another 'weir pack' has just finished it");
  if (!resume() && ::ftruncate(fd_, 0) != 0) return failed("cannot be emptied", errno);
  data_ = ::open(part_path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECT);
  direct_ = data_ >= 0;
  if (data_ < 0) data_ = ::open(part_path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (data_ < 0) return failed("cannot be written", errno);
  return {};
}

// Whether there is a beginning of this very bundle.
bool BundleWriter::resume() {
  const Result<ExpertBundle> begun = ExpertBundle::open(part_path_);
  if (!begun) return false;
  const BundleHead &old = begun->head, &head = plan_.head;
  if (old.source != head.source || old.layers != head.layers || old.experts != head.experts ||
      old.file_bytes != head.file_bytes)
    return false;
  for (size_t i = 0; i < begun->index.size(); ++i)
    if (begun->index[i].offset != plan_.index[i].offset ||
        begun->index[i].bytes != plan_.index[i].bytes)
      return false;
  std::copy(begun->index.begin(), begun->index.end(), plan_.index.begin());
  plan_.head.layers_done = old.layers_done;
  plan_.head.index_crc = old.index_crc;
  return true;
}

Result<void> BundleWriter::take_room(uint64_t reserve) {
  struct stat info {};
  struct statvfs disk {};
  if (::fstat(fd_, &info) != 0 || ::fstatvfs(fd_, &disk) != 0)
    return failed("cannot be looked at", errno);
  const uint64_t bytes = plan_.head.file_bytes;
  const uint64_t taken = static_cast<uint64_t>(info.st_blocks) * 512;
  const uint64_t need = bytes > taken ? bytes - taken : 0;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free < need + reserve) {
    if (plan_.head.layers_done == 0) (void)::unlink(part_path_.c_str());
    return fail(ErrorCode::kCapacity, path_ + ": expected " + mib(need + reserve) +
                                          " free on this disk (" + mib(need) + " for the bundle, " +
                                          mib(reserve) +
                                          " to be left, see --disk-reserve), found " + mib(free));
  }
  if (const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes)); error != 0)
    return failed("cannot take " + mib(bytes) + " of the disk", error);
  return plan_.head.layers_done == 0 ? write_head() : Result<void>();
}

Result<void> BundleWriter::write_at(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EINVAL && fd == data_ && direct_.exchange(false)) {
      (void)::fcntl(data_, F_SETFL, 0);  // O_DIRECT is taken at open and refused at the transfer.
      continue;
    }
    if (put <= 0) return failed("cannot be written", put < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Result<void> BundleWriter::write_head() {
  const auto head = encode(plan_.head);
  return write_at(fd_, 0, head);
}

Result<void> BundleWriter::sync(int fd, const std::string& path) {
  if (::fsync(fd) == 0) return {};
  return failed(path + " cannot be brought to the disk", errno);
}

Result<void> BundleWriter::write(int32_t layer, int32_t expert, const std::byte* memory) {
  CHECK(layer == layers_done());
  PackedExpert& entry =
      plan_.index[static_cast<size_t>(layer) * plan_.head.experts + static_cast<size_t>(expert)];
  const std::span first(memory, entry.bytes[0]), second(memory + entry.bytes[0], entry.bytes[1]);
  entry.crc = {crc32c(first), crc32c(second)};
  return write_at(data_, entry.offset, {memory, first.size() + second.size()});
}

// What the superblock says is done is on the disk before it says so.
Result<void> BundleWriter::end_layer() {
  BundleHead& head = plan_.head;
  const size_t begin = size_t{head.layers_done} * head.experts;
  const auto entries = std::span<const PackedExpert>(plan_.index).subspan(begin, head.experts);
  const std::vector<std::byte> bytes = encode(entries);
  WEIR_TRY(write_at(fd_, kBlockBytes + begin * bytes.size() / head.experts, bytes));
  WEIR_TRY(sync(fd_, part_path_));
  const uint64_t size = uint64_t{entries[0].bytes[0]} + entries[0].bytes[1];
  if (!direct_)
    (void)::posix_fadvise(fd_, static_cast<off_t>(entries[0].offset),
                          static_cast<off_t>(size * head.experts), POSIX_FADV_DONTNEED);
  head.index_crc = crc32c(bytes, head.index_crc);
  ++head.layers_done;
  return write_head();
}

Result<void> BundleWriter::finish() {
  CHECK(plan_.head.layers_done == plan_.head.layers);
  WEIR_TRY(sync(fd_, part_path_));
  plan_.head.complete = true;
  WEIR_TRY(write_head());
  WEIR_TRY(sync(fd_, part_path_));
  if (::rename(part_path_.c_str(), path_.c_str()) != 0)
    return failed("cannot be renamed to " + path_, errno);
  const std::string folder = folder_of(path_);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(folder + " cannot be opened", errno);
  const Result<void> synced = sync(fd, folder);
  ::close(fd);
  return synced;
}

}  // namespace weir::ssd
