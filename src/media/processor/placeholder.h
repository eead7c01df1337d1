// The text that stands for a picture in a prompt, once it is known how many tokens it takes.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "media/processor/image_plan.h"
#include "media/processor/processor.h"

namespace weir::media {

// Takes the place of `processor.placeholder.prompt`. The token `placeholder.image` is in it once for
// each row of features, in their order: token_count() times.
std::string placeholder_text(const Processor& processor, const ImagePlan& plan);

}  // namespace weir::media
