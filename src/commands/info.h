// `weir info`: a model's architecture, where its memory would go, which kernels would run, and whether
// and how fast it would: also of a model of the hub, before it is fetched.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> show_info(const Options& options);

}  // namespace weir
