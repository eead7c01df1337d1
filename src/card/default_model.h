// The model compiled into the binary: models/weir-tiny-moe, so that `weir` alone answers from any
// folder (default_model.S holds the bytes).
//
// Threads: any; a pure function.
#pragma once

#include "card/model_files.h"

namespace weir::card {

inline constexpr char kDefaultModelName[] = "weir-tiny-moe";

ModelFiles default_model();

}  // namespace weir::card
