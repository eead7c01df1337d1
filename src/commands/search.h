// `weir search`: models of the hub that fit some words, or the catalogue, and what becomes of them
// on this machine as far as the catalogue knows.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> search_models(const Options& options);

}  // namespace weir
