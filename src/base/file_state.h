// FileState: what has become of a file that was opened a while ago.
//
// Threads: pure functions.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace weir {

enum class FileChange : uint8_t {
  kNone,
  kReplaced,  // The path names another file, or none; the one that is open is as it was: safe.
  kModified,  // Written in place, or grown: what was read before and after may not belong together.
  kTruncated,
};

struct FileState {
  FileChange change = FileChange::kNone;
  uint64_t bytes = 0;         // Now.
  uint64_t opened_bytes = 0;  // When it was opened.
};

// "replaced", "modified", "truncated"; "unchanged".
const char* name_of(FileChange change);

constexpr bool changed_in_place(FileChange change) {
  return change == FileChange::kModified || change == FileChange::kTruncated;
}

// Asks the file system about the file that is open as `fd`, and about what `path` names now.
// `opened`: what fstat() said when it was opened.
FileState file_state(int fd, const std::string& path, const struct stat& opened);

}  // namespace weir
