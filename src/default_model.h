// The model compiled into the binary: models/weir-tiny-moe, so that `weir` alone answers from any
// folder (src/default_model.S holds the bytes).
#pragma once

#include "base/file.h"

namespace weir {

inline constexpr char kDefaultModelName[] = "weir-tiny-moe";

ModelFiles default_model();

}  // namespace weir
