// HubDesk: what the server asks of the hub of models, and of the cache for its files, while it
// serves. Who answers is the program's business (program/pull_desk.h): this folder knows no hub.
//
// Threads: the loop's. The callbacks come on the loop, `done` once, perhaps before the function
// returns; none comes after the desk has gone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace weir::api {

// How far a pull is.
struct PullProgress {
  std::string digest{};  // Of all that the model is: 64 hexadecimal digits.
  int64_t bytes = 0, bytes_done = 0;
};

class HubDesk {
 public:
  using Progress = std::function<void(const PullProgress& progress)>;
  using Done = std::function<void(const Result<void>& done)>;

  virtual ~HubDesk() = default;

  // Fetches what the cache lacks of a model ("org/name[@revision][:file]"). What it returns ends
  // the pull: neither callback comes from then on. To be called at most once, and not after `done`.
  virtual std::function<void()> pull(const std::string& name, Progress progress, Done done) = 0;
  // Deletes a model's files in the cache, and nothing else.
  virtual void remove(const std::string& name, Done done) = 0;
};

}  // namespace weir::api
