// Cache: the folder of models that huggingface_hub and weir share.
//
//   models--ORG--NAME/blobs/HASH             bytes, under the name that proves them
//                     refs/REVISION          the commit that a branch or tag meant last
//                     snapshots/COMMIT/PATH  a link to a blob
//                     trees/COMMIT.json      all files of the commit: what "whole" means
//
// What lies there is not trusted: names that are none are passed over, and no link is followed
// where something is deleted.
//
// Threads: any; it holds nothing but the folder's name. Other processes may change what is there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_name.h"
#include "hub/tree.h"

namespace weir::hub {

// A commit's files on this machine.
struct Snapshot {
  std::string id;      // "org/name".
  std::string commit;  // 40 digits.
  std::string folder;  // .../models--ORG--NAME/snapshots/COMMIT
  // What to give as --model: the folder, or the (first) GGUF file in it.
  std::string model_path;
  std::vector<TreeFile> files;  // Of the model, as they are here.
};

class Cache {
 public:
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // .../models--ORG--NAME. REQUIRES: is_repo_id(id).
  std::string model_folder(std::string_view id) const;

  // The snapshot that the name means, if all of its files are here with their sizes; nothing is
  // hashed, and no network asked. nullopt: there is none, or it is not whole.
  Result<std::optional<Snapshot>> find(const ModelName& name) const;

 private:
  std::string folder_;
};

}  // namespace weir::hub
