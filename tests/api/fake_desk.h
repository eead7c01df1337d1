// FakeDesk: a HubDesk that answers at once, or when it is told to.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/serving/hub_desk.h"

namespace weir::api {

class FakeDesk final : public HubDesk {
 public:
  // What pulls and removals end with.
  Result<void> result{};
  // Else a pull stays open after its progress.
  bool ends_pulls = true;
  std::atomic<int> stopped{0};

  std::function<void()> pull(const std::string& name, Progress progress, Done done) override {
    note("pull " + name);
    if (result) progress({.digest = std::string(64, 'a'), .bytes = 10, .bytes_done = 4});
    if (ends_pulls) done(result);
    return [this] { ++stopped; };
  }
  void remove(const std::string& name, Done done) override {
    note("remove " + name);
    done(result);
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(what));
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
};

}  // namespace weir::api
