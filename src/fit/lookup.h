// Lookup: where a model's files are, and what they say: a folder or a GGUF file, the cache that is
// shared with huggingface_hub, or the hub, of which only headers are fetched.
//
// Threads: one, which waits for the hub's answers.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "card/model_files.h"
#include "program/options.h"

namespace weir::fit {

struct Found {
  card::ModelFiles files;
  std::string id;          // "org/name", if it is a name of the hub.
  std::string commit;      // Of files that are not here; else empty.
  bool here = true;        // The files are on this machine; else their headers are known.
  int64_t file_bytes = 0;  // Not here: what would be fetched.
  // A path on the disk that has the files, or would have them; empty: compiled in.
  std::string disk;
};

// `path`, or the nearest folder above it that is there: on the disk that it would lie on.
std::string existing_folder(const std::string& path);

// Of --model; without, the model compiled in. A folder of that name wins. Errors: those of opening
// card::ModelFiles, and of hub::Client.
Result<Found> look_up(const Options& options);

}  // namespace weir::fit
