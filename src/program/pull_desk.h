// PullDesk: models of the hub fetched into the cache, and deleted from it, while a server serves.
// Pulls run one after another, each as `weir pull` does it; one that is ended leaves what has come,
// and the next one goes on there.
//
// Threads: everything here is called on the thread that `post` posts to; files are fetched and
// deleted on two others, which begin with the first of their tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/serving/hub_desk.h"
#include "base/background_thread.h"
#include "base/result.h"
#include "program/model_source.h"
#include "program/options.h"

namespace weir {

class PullDesk final : public api::HubDesk {
 public:
  // Pulls and deletions that wait, those that run included; one more is refused.
  static constexpr size_t kOpenMax = 8;

  // `served`: the paths of the models that are served now, which are not deleted.
  // `post` runs a function on the caller's thread, from any thread; what it has not run when the
  // desk goes does nothing any more.
  PullDesk(const Options& options, std::function<std::vector<std::string>()> served,
           std::function<void(std::function<void()>)> post);
  // What runs is told to stop, and waited for.
  ~PullDesk() override;

  std::function<void()> pull(const std::string& name, Progress progress, Done done) override;
  void remove(const std::string& name, Done done) override;

 private:
  struct Task {
    Progress progress{};
    Done done{};
    std::shared_ptr<std::atomic<bool>> stop{};
  };

  Result<void> room() const;
  void fetch(uint64_t number, const hub::ModelName& name, const std::atomic<bool>& stop);
  Result<void> remove_now(const hub::ModelName& name, const std::vector<std::string>& served) const;
  // From the other threads.
  void tell(uint64_t number, const api::PullProgress& progress);
  void finish(uint64_t number, const Result<void>& result);

  const Options options_;  // Of a pull.
  const std::function<std::vector<std::string>()> served_;
  const std::function<void(std::function<void()>)> post_;
  std::map<uint64_t, Task> tasks_;  // By their numbers.
  uint64_t begun_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::atomic<bool> stopping_{false};
  // Last: they end first.
  std::optional<BackgroundThread> pulls_, removals_;
};

}  // namespace weir
