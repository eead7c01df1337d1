// Container: which kind of file holds a video, and whether the whole of it is there. The file's
// outermost parts say so, and nothing within them is read.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace weir::media {

enum class Container : uint8_t { kMp4, kWebm, kGif };

const char* container_name(Container container);

// Which of them the bytes begin as. MP4 is every file of boxes that no picture's brand begins,
// QuickTime's among them; WebM is Matroska's too.
std::optional<Container> container_of(std::string_view bytes);

// kInvalid where the file ends before its last part does, so that frames would be missing at the
// end. A WebM that was recorded live does not say how long it is, and passes.
Result<void> check_whole(Container container, std::string_view bytes);

// "the MP4 is damaged: WHAT"; kInvalid.
tl::unexpected<Error> damaged(Container container, std::string_view what);

}  // namespace weir::media
