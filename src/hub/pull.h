// pull(): from a name to a snapshot on this machine: what the commands and the server call.
//
// Threads: the caller's, which runs all of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/cache.h"
#include "hub/client.h"
#include "hub/download.h"

namespace weir::hub {

struct PullOptions : DownloadOptions {
  std::vector<std::string> include;  // Patterns of paths instead of what a model is.
  // Before anything large is fetched: may the model be refused (an architecture that is not read,
  // too large for this machine)? An error ends the pull.
  std::function<Result<void>(Client& client, const HubModel& model)> check;
};

Result<Snapshot> pull(Client& client, const Cache& cache, const ModelName& name,
                      const PullOptions& options);

}  // namespace weir::hub
