// PartialFile: a blob that is being fetched: blobs/HASH.weir, of which some ranges are there, and
// blobs/HASH.weir.json, which says which. A process that is killed leaves both, and the next one
// goes on from them.
//
// What was written survives a killed process at once, for the page cache does; a machine that
// stops loses what was not synced. So the list has both: `written`, which counts while the
// machine has not been started anew (its boot id), and `synced`, which always counts.
//
// Threads: one at a time. Other processes are kept out by a lock, the same that huggingface_hub
// takes: .locks/models--ORG--NAME/HASH.lock.
//
// Invariants:
// (1) What the list names has been written before the list was.
// (2) The blob gets its name only when its hash is its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/blob_hash.h"
#include "hub/byte_ranges.h"
#include "hub/file_handle.h"
#include "hub/tree.h"

namespace weir::hub {

class PartialFile {
 public:
  // `path`: blobs/HASH, without an ending. nullopt: another process has the lock. Its folders are
  // made where they are not there.
  static Result<std::optional<PartialFile>> open(const std::string& path,
                                                 const std::string& lock_path,
                                                 const TreeFile& file);

  const ByteRanges& written() const { return written_; }
  bool whole() const { return written_.bytes() == size_; }

  Result<void> write(uint64_t offset, std::string_view bytes);
  // The list, of what is written until now.
  Result<void> save();
  // The data to the disk, then the list.
  Result<void> sync();
  // Deletes what is there: another process has finished the blob.
  void discard();

  // Hashes on, at most `bytes` of what is there without a gap. True: all of a whole file is hashed.
  Result<bool> hash(uint64_t bytes);
  uint64_t hashed() const { return hashed_; }
  // After hash() has said true. True: the bytes are right, and the blob has its name. False: they
  // are wrong, `found` is what they have, and nothing is left of them.
  Result<bool> finish(std::string& found);

 private:
  PartialFile(std::string path, const TreeFile& file, FileHandle lock, FileHandle data);

  void read_list();
  void restart();
  Result<void> failed(const char* what) const;

  std::string path_;
  std::string blob_;
  uint64_t size_ = 0;
  FileHandle lock_, data_;
  ByteRanges written_, synced_;
  std::optional<BlobHash> hash_;
  uint64_t hashed_ = 0;
  uint64_t sent_to_disk_ = 0;  // Bytes written since the kernel was last told to write.
};

// What of a blob is there by the list beside it, 0 without one. For those that only look.
int64_t partial_bytes(const std::string& path);

}  // namespace weir::hub
