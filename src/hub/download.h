// download(): a model's files into the cache: several connections, parts that go on where a killed
// process left off, every byte's hash checked before it has its name.
//
// Threads: the caller's, which runs all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/cache.h"
#include "hub/client.h"

namespace weir::hub {

struct Progress {
  int64_t bytes = 0, bytes_done = 0;  // Of all files, with those that were here before.
  int64_t bytes_here = 0;             // Of these, what was here when it began.
  size_t files = 0, files_done = 0;
  std::string file;     // One that is being fetched or checked.
  std::string waiting;  // Why nothing comes at present; empty where something does.
};

struct DownloadOptions {
  size_t connections = 4;
  int64_t disk_reserve = int64_t{5} << 30;  // Bytes that stay free on the disk.
  // Called some times a second, and at the end.
  std::function<void(const Progress& progress)> on_progress = {};
};

// What is missing of `model.files`; then the links and the ref. Errors: those of Client,
// kCapacity (the disk), kIo, kInvalid (bytes that are not what their hash says, twice).
Result<Snapshot> download(Client& client, const Cache& cache, const HubModel& model,
                          const DownloadOptions& options);

// Bytes of `files` that download() would fetch.
int64_t missing_bytes(const Cache& cache, const HubModel& model);

}  // namespace weir::hub
