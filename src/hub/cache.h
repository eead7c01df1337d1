// Cache: the folder of models that huggingface_hub and weir share.
//
//   models--ORG--NAME/blobs/HASH             bytes, under the name that proves them
//                     refs/REVISION          the commit that a branch or tag meant last
//                     snapshots/COMMIT/PATH  a link to a blob
//                     trees/COMMIT.json      all files of the commit: what "whole" means
//   .locks/models--ORG--NAME/HASH.lock       held while a blob is fetched
//
// What lies there is not trusted: names that are none are passed over, no path of a hub's is
// written through a link, and nothing is deleted through one.
//
// Threads: any; it holds nothing but the folder's name. Other processes may change what is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hub/client.h"
#include "hub/model_name.h"
#include "hub/tree.h"

namespace weir::hub {

// A commit's files on this machine.
struct Snapshot {
  std::string id = {};      // "org/name".
  std::string commit = {};  // 40 digits.
  std::string folder = {};  // .../models--ORG--NAME/snapshots/COMMIT
  // What to open as a model: the folder, or the first GGUF file in it.
  std::string model_path = {};
  std::vector<TreeFile> files = {};  // Of the model, as they are here.
};

class Cache {
 public:
  // `folder`: absolute.
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // .../models--ORG--NAME. REQUIRES: is_repo_id(id).
  std::string model_folder(std::string_view id) const;
  std::string snapshot_folder(std::string_view id, std::string_view commit) const;
  std::string blob_path(std::string_view id, std::string_view blob) const;
  std::string lock_path(std::string_view id, std::string_view blob) const;

  // The snapshot that the name means, if all of its files are here with their sizes; nothing is
  // hashed, and no network asked. nullopt: there is none, or it is not whole.
  std::optional<Snapshot> find(const ModelName& name) const;
  // The commit that a revision meant when it was last pulled, or that it is.
  std::optional<std::string> commit_of(std::string_view id, std::string_view revision) const;
  // All files of a commit, if the cache has that list.
  std::optional<Tree> tree_of(std::string_view id, std::string_view commit) const;

  // Before a download: the folder, and the list of the commit's files.
  Result<void> begin(const HubModel& model) const;
  // After it: the links, and what the revision means.
  Result<Snapshot> publish(const HubModel& model) const;

 private:
  std::string folder_;
};

// What lies in a snapshot's folder and can be read, by path; blob: the name that its link has, if
// it is one. Links to folders are not followed.
std::vector<TreeFile> files_in(const std::string& snapshot_folder);

// "org/name" of "models--org--name"; empty: it is none.
std::string id_of_folder(std::string_view name);

}  // namespace weir::hub
