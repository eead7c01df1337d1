// Swarm: many clients in one process of its own, so that what they cost is not the server's. It
// looks at bytes as little as it can: ends of chunks, ends of events, the time of the last byte.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::bench {

struct SwarmResult {
  int64_t streams = 0;   // That ended as they should.
  int64_t events = 0;    // Of all streams.
  int64_t chunks = 0;    // Which carry them.
  int64_t bytes = 0;     // Without heads.
  int64_t requests = 0;  // Small ones.
  int64_t response_bytes = 0;
  double fastest_s = 0, slowest_s = 0;  // From a stream's request to its end.
  double cpu_us = 0;                    // Of the swarm.
};

// Runs swarms as child processes of this program (`self --swarm ...`), one at a time.
class Swarm {
 public:
  // `clients` connections, on each `body` is posted to `path` and the answer read to its end.
  static Swarm streams(uint16_t port, int32_t clients, const std::string& path,
                       const std::string& body);
  // `clients` connections, on each `count` times GET `path`, one after the other.
  static Swarm requests(uint16_t port, int32_t clients, const std::string& path, int32_t count);

  // What it has used so far, in microseconds.
  double cpu_us() const;
  // Until the last answer has ended.
  Result<SwarmResult> wait();

 private:
  explicit Swarm(const std::vector<std::string>& arguments);
  pid_t process_ = -1;
  int output_ = -1;
};

// What the child process does; `arguments` as Swarm passes them. Returns the exit code.
int run_swarm(const std::vector<std::string>& arguments);

}  // namespace weir::bench
