// serve: the composition root. Builds every part, starts the threads, joins them.
#pragma once

#include "base/result.h"
#include "options.h"

namespace weir {

// Runs until SIGTERM or SIGINT has drained the server (a second signal stops at once). An error
// means that it could not start.
Result<void> serve(const Options& options);

}  // namespace weir
