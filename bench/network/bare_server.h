// BareServer: what the operating system alone takes. One thread, epoll, read and write of bytes
// that were ready before; no HTTP.
//
// Threads: run_streams() and run_requests() own theirs; the caller only waits.
#pragma once

#include <cstdint>
#include <string>

#include "cpu_time.h"

namespace weir::bench {

struct BareResult {
  CpuTime cpu;         // Of the loop's thread, within the window.
  int64_t writes = 0;  // Within the window.
};

class BareServer {
 public:
  BareServer();
  ~BareServer();
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;

  uint16_t port() const { return port_; }

  // Reads a request from each of `clients` connections; then, each `period_us`, is woken by another
  // thread and writes a chunk of `chunk_bytes` to each, `steps` times; then ends the answers. The
  // window leaves out the first and the last `margin` steps.
  BareResult run_streams(int32_t clients, int32_t steps, int32_t margin, int64_t period_us,
                         int64_t chunk_bytes);
  // Answers each read of `clients` connections by `response_bytes`, until they are closed. The
  // window is all of it.
  BareResult run_requests(int32_t clients, int64_t response_bytes);

 private:
  int accept_one() const;

  int listener_ = -1;
  uint16_t port_ = 0;
};

}  // namespace weir::bench
