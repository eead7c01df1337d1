// serve: the composition root. Builds every part, starts the threads, joins them.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/trace.h"
#include "program/options.h"

namespace weir {

// Runs until SIGTERM or SIGINT has drained the server (a second signal stops at once). An error
// means that it could not start.
Result<void> serve(const Options& options);

// What a command wants of a server that it runs for itself.
struct ServeHooks {
  // Network loop, engine and team record here; it outlives serve().
  trace::Recorder* recorder = nullptr;
  // On the network loop when requests are answered, instead of the greeting. `stop` drains the
  // server; any thread may call it, once, before serve() returns.
  std::function<void(uint16_t port, std::function<void()> stop)> on_ready;
};
Result<void> serve(const Options& options, const ServeHooks& hooks);

}  // namespace weir
