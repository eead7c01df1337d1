// The parts' functions, for the table in parts.cpp; each is in the file of its name,
// those of images and audio in media.cpp.
#pragma once

#include "base/result.h"
#include "suite/run.h"

namespace weir::suite {

Result<void> measure_speed(Run& run);
Result<void> measure_serving(Run& run);
Result<void> measure_memory(Run& run);
Result<void> measure_matrix(Run& run);
Result<void> measure_cache(Run& run);
Result<void> measure_bits(Run& run);
Result<void> measure_images(Run& run);
Result<void> measure_audio(Run& run);
Result<void> measure_quality(Run& run);
Result<void> measure_needles(Run& run);
Result<void> measure_tools(Run& run);
Result<void> measure_soak(Run& run);

}  // namespace weir::suite
