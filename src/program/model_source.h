// ModelSource: where the model is that --model names: a folder or file, a snapshot in the cache of
// the Hugging Face hub, or at the hub, from where it is pulled.
//
// Threads: any; pull_model() works on the caller's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/cache.h"
#include "hub/client.h"
#include "hub/download.h"
#include "hub/model_name.h"
#include "hub/settings.h"
#include "program/options.h"

namespace weir {

struct ModelSource {
  std::optional<hub::ModelName> name;  // Of a model of the hub; none: a path, or the built-in one.
  std::string path;                    // What to open. Empty with a name: it is not here.
};

// Without the network. A folder or file of that name wins over the hub's model.
Result<ModelSource> find_source(const Options& options);

// The environment's, and --offline.
Result<hub::Settings> hub_settings(const Options& options);

// What a caller wants to hear of a pull, from the thread that pulls.
struct PullWatch {
  std::function<void(const hub::HubModel& model, int64_t missing)> on_begin;
  std::function<void(const hub::Progress& progress)> on_progress;
  std::function<void(const std::string& why)> on_wait;  // A request is tried again later.
  std::function<bool()> stop;                           // Asked often; may be empty.
};

// Fetches what is missing of a model (with --include: of the files that match) after its
// config.json has been found to be one that Weir reads. With --dry-run nothing, and the snapshot
// has only its name.
Result<hub::Snapshot> pull_model(const Options& options, const hub::ModelName& name,
                                 const PullWatch& watch);

}  // namespace weir
