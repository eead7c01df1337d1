// The text that stands for a picture in a prompt, once it is known how many tokens it takes.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "media/processor/image_plan.h"
#include "media/processor/processor.h"

namespace weir::media {

// Takes the place of `processor.placeholder.prompt`. The token `placeholder.image` is in it once for
// each row of features, in their order: token_count() times.
std::string placeholder_text(const Processor& processor, const ImagePlan& plan);

// What this template writes where a picture is: Placeholder::prompt, or ::older where it has only
// that.
std::string mark_in(const Placeholder& marks, std::string_view chat_template);

}  // namespace weir::media
