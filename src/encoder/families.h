// From config.json to the description of its vision tower.
//
// Threads: free functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "encoder/spec.h"

namespace weir::encoder {

// kUnsupported for a family whose pictures are not computed here, by name; kConfig says what of its
// keys is wrong.
Result<EncoderSpec> spec_from_config(JsonValue config);

}  // namespace weir::encoder
