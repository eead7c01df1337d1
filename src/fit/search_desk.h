// SearchDesk: searches of the hub for a server: one after another, on a thread of its own, so that
// a hub that does not answer keeps no other request waiting.
//
// Threads: everything here is called on the thread that `post` posts to; the hub is asked on
// another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/background_thread.h"
#include "base/result.h"
#include "fit/catalogue.h"
#include "hub/client.h"
#include "program/memory_limit.h"
#include "program/options.h"

namespace weir::fit {

class SearchDesk {
 public:
  // Called once, unless the desk goes before: with the answer's JSON (search.h).
  using Done = std::function<void(const Result<std::string>& json)>;

  // Searches that wait; one more is refused. A person types one after another.
  static constexpr size_t kWaitingMax = 8;

  // `post` runs a function on the caller's thread, from any thread; what it has not run when the
  // desk goes does nothing any more.
  SearchDesk(const Options& options, const MemoryLimit& limit,
             std::function<void(std::function<void()>)> post);
  // What runs is told to stop, and waited for.
  ~SearchDesk();

  // Without words, what the catalogue has. Errors: kOverloaded, and those of hub::Client.
  void ask(hub::SearchQuery query, Done done);

 private:
  Result<std::string> answer(const hub::SearchQuery& query) const;

  const Options options_;
  const MemoryLimit limit_;
  const std::function<void(std::function<void()>)> post_;
  const Catalogue catalogue_;
  std::map<uint64_t, Done> waiting_;  // By their numbers.
  uint64_t asked_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::atomic<bool> stopping_{false};
  BackgroundThread thread_{"weir-search"};  // Ends first.
};

}  // namespace weir::fit
