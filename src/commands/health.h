// `weir health`: asks a server of this machine whether it is well, for checks of containers.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

// The server that `options` would start. An error: it does not answer, or /health says that it is
// not well: it loads, or ends.
Result<void> check_health(const Options& options);

}  // namespace weir
