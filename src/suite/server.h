// Server: a Weir of the suite's own, in a process of its own: what it takes of memory and time is
// its own, and each part may have one with other options.
//
// Threads: its owner's.
#pragma once

#include <string>
#include <vector>

#include "base/process_usage.h"
#include "base/result.h"
#include "program/options.h"
#include "suite/child.h"
#include "suite/client.h"

namespace weir::suite {

class Server {
 public:
  // With what the suite was told of servers, and `words` after it. Waits until it answers.
  static Result<Server> start(const Options& options, const std::vector<std::string>& words = {});

  const Endpoint& endpoint() const { return endpoint_; }
  double start_seconds() const { return start_seconds_; }  // From exec until it answered.
  int32_t pid() const { return child_.pid(); }
  ProcessUsage usage() const { return process_usage(child_.pid()); }
  // Drains it. An error where it does not end as it should.
  Result<void> stop();

 private:
  Server(Child child, Endpoint endpoint, double start_seconds)
      : child_(std::move(child)), endpoint_(std::move(endpoint)), start_seconds_(start_seconds) {}

  Child child_;
  Endpoint endpoint_;
  double start_seconds_ = 0;
};

}  // namespace weir::suite
