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
  std::string path;  // "model.safetensors", "onnx/model.onnx"; is_safe_path().
  int64_t size = 0;
  // The name of its bytes, and the proof of them: the SHA-256 of a large file (64 digits), git's
  // SHA-1 of "blob SIZE\0" and the bytes of a small one (40 digits). Lower case.
  std::string blob;

  bool is_large() const { return blob.size() == 64; }  // Git LFS keeps it; a CDN sends it.
};

// Below a snapshot's folder whatever else is there: relative, at most four folders deep, 255 bytes
// a part, no part that is empty, "." or "..", no backslash or control character.
bool is_safe_path(std::string_view path);
// 40 or 64 lower-case hexadecimal digits.
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
