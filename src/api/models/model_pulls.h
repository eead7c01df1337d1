// ModelPulls: models of the hub that are fetched because a client ordered it (POST /models). They
// go on when the client leaves, and end when they are done, when that is ordered, or with the
// server; what has come by then stays in the cache, and the next pull goes on there.
//
// Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/hub_desk.h"
#include "base/result.h"

namespace weir::api {

struct PullStatus {
  enum class State : uint8_t { kRuns, kFinished, kFailed };

  std::string name;
  State state = State::kRuns;
  int64_t bytes = 0, bytes_done = 0;  // 0 of 0: the hub has not said yet.
  std::string failure{};              // Why it failed.
};

class ModelPulls {
 public:
  using Listener = std::function<void(const PullStatus& status)>;

  // `hub`: null, where this server asks none; it outlives the pulls. `listener` hears of each
  // change.
  ModelPulls(HubDesk* hub, Listener listener) : hub_(hub), listener_(std::move(listener)) {}
  ModelPulls(const ModelPulls&) = delete;
  ModelPulls& operator=(const ModelPulls&) = delete;
  ~ModelPulls() { stop_all(); }

  // Of one that is being fetched already nothing happens. An error: it did not begin.
  Result<void> begin(const std::string& name);
  // Ends the pull of that name. False: there is none.
  bool stop(std::string_view name);
  void stop_all();  // The listener does not hear of it.
  // Those that run.
  std::vector<PullStatus> list() const;

 private:
  struct Pull {
    PullStatus status;
    std::function<void()> stop{};
  };

  void progress(const std::string& name, const PullProgress& now);
  void end(const std::string& name, const Result<void>& result);

  HubDesk* const hub_;
  const Listener listener_;
  std::map<std::string, Pull, std::less<>> pulls_;  // By their names.
};

}  // namespace weir::api
