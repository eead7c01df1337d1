// From config.json to the description of its tower for pictures, or for sounds.
//
// Threads: free functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "encoder/spec.h"

namespace weir::encoder {

// kUnsupported for a family whose media of that kind are not computed here, by name; kConfig says
// what of its keys is wrong.
Result<EncoderSpec> spec_from_config(JsonValue config, Medium medium = Medium::kPicture);

}  // namespace weir::encoder
