// Verdicts, speeds and footprints as JSON: for `weir info --json`, searches, and the catalogue,
// which is read back.
//
// Threads: any.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "fit/speed.h"
#include "fit/verdict.h"
#include "program/memory_plan.h"

namespace weir::fit {

void write_json(JsonWriter& writer, const Fit& fit);
void write_json(JsonWriter& writer, const Speed& speed);
void write_json(JsonWriter& writer, const ModelFootprint& model);

// What write_json() has written of a footprint. The error names the member.
Result<ModelFootprint> read_footprint(JsonValue value);

}  // namespace weir::fit
