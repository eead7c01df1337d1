// ModelHost: what loads and unloads models for the ModelRegistry. The registry decides which, and
// when; a host reads files, takes memory and runs engines, and decides nothing. So a host may as
// well be another process.
//
// Threads: the loop's; every callback is called there too, later, never before the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "api/models/known_model.h"
#include "api/models/model_status.h"
#include "api/serving/api_config.h"
#include "base/result.h"

namespace weir::api {

// A model that is loaded. What the config points to lives until the host has unloaded it.
struct HostedModel {
  ApiConfig config;
  int64_t bytes = 0;  // Of memory that is planned for it.
};

class ModelHost {
 public:
  struct Progress {
    ModelState state = ModelState::kLoading;  // Or kDownloading.
    int32_t percent = -1;                     // Of the state; -1: not known.
  };

  virtual ~ModelHost() = default;

  // Bytes that all models may take together.
  virtual int64_t room() const = 0;

  // Has the model's files read, fetched first where they are not here, and says how many bytes it
  // needs at the least. Nothing is taken yet.
  virtual void open(size_t model, const LoadOptions& options,
                    std::function<void(const Progress&)> progress,
                    std::function<void(Result<int64_t>)> done) = 0;
  // Loads a model that was opened, into `free` bytes at the most. What serves goes on serving.
  virtual void load(size_t model, int64_t free, std::function<void(const Progress&)> progress,
                    std::function<void(Result<std::shared_ptr<HostedModel>>)> done) = 0;
  // The open() or load() that runs, if it is this model's, ends soon with kCancelled.
  virtual void stop(size_t model) = 0;
  // Looks again which models there are: all that it has known, by number. New ones are at the end;
  // of one that is gone the number stays, and is its own again if it comes back.
  virtual void look_again(std::function<void(Result<std::vector<KnownModel>>)> done) = 0;
  // REQUIRES: it is loaded, and what HostedModel::config points to is used no more.
  virtual void unload(size_t model, std::function<void()> done) = 0;
};

}  // namespace weir::api
