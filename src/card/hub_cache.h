// The folders of Hugging Face's hub cache: models--ORG--NAME holds `refs/main` (the commit that was
// downloaded last) and `snapshots/COMMIT` with the files of each.
//
// Threads: any.
#pragma once

#include <string>

#include "base/result.h"

namespace weir::card {

// A model's folder and what it is called.
struct ModelFolder {
  std::string path;
  std::string name;
};

// `folder` itself under its last component's name, unless it is of a hub cache: of
// models--ORG--NAME the snapshot that refs/main names, or the only one where there is no refs/main;
// of that and of a snapshot given by its own path the name is ORG/NAME. REQUIRES: `folder` is a
// folder's absolute, normal path, without a slash at its end.
Result<ModelFolder> resolve_hub_folder(const std::string& folder);

}  // namespace weir::card
