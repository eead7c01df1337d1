// SearchDesk: searches of the hub for a server: one after another, on a thread of its own, so that
// a hub that does not answer keeps nobody else waiting.
//
// Threads: everything here is called on the thread that `post` posts to; the hub is asked on
// another.
#pragma once

#include <atomic>
#include <functional>
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
  using Done = std::function<void(Result<std::string> json)>;

  // Searches that wait; one more is refused. A person types one after another.
  static constexpr int kWaitingMax = 8;

  // `post` runs a function on the caller's thread, from any thread, as long as the desk is there.
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
  int waiting_ = 0;
  std::atomic<bool> stopping_{false};
  BackgroundThread thread_{"weir-search"};  // Ends first.
};

}  // namespace weir::fit
