// Tree: the files of a commit, as the hub lists them, and as the cache keeps that list.
//
// What the hub says is not trusted: a path that could leave a folder, a size or a hash that is none
// is an error, and never reaches a file system.
//
// Threads: any; values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::hub {

struct TreeFile {
  std::string path = {};  // "model.safetensors", "1_Pooling/config.json"; is_safe_path().
  int64_t size = 0;
  // The name of its bytes, and the proof of them: the SHA-256 of a large file (64 digits), git's
  // SHA-1 of "blob SIZE\0" and the bytes of a small one (40 digits). Lower case.
  std::string blob = {};
  // What huggingface_hub wants to find in the cache's list beside that: git's name of a large
  // file's pointer, and the name that Xet has for its bytes. May be empty.
  std::string pointer = {}, xet = {};

  bool is_large() const;  // Git LFS keeps it; a CDN sends it.
};

// Below a snapshot's folder whatever else is there: relative, at most 16 parts of at most 255 bytes
// and 1,024 in all, none of them empty, "." or "..", no backslash and no control character. (Parts
// of Core ML's models lie seven folders deep.)
bool is_safe_path(std::string_view path);
// 40 or 64 hexadecimal digits in lower case.
bool is_blob_name(std::string_view text);

struct Tree {
  static constexpr size_t kFilesMax = 100'000;

  std::string commit;           // 40 digits.
  std::vector<TreeFile> files;  // By path; no path twice, none that is a folder of another.

  const TreeFile* find(std::string_view path) const;  // Null: there is none.

  // One page of GET /api/models/ID/tree/COMMIT?recursive=true. After the last: finish().
  Result<void> add_page(std::string_view json);
  // Sorts, and refuses files that cannot lie beside each other.
  Result<void> finish();

  // trees/COMMIT.json of the cache, which proves what a whole snapshot is.
  std::string to_json() const;
  static Result<Tree> from_json(std::string_view json, std::string commit);
};

}  // namespace weir::hub
