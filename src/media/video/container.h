// Container: which kind of file holds a video, whether the whole of it is there, which its outermost
// parts say, and what memory the tables within it take.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace weir::media {

enum class Container : uint8_t { kMp4, kWebm, kGif };

const char* container_name(Container container);

// Which of them the bytes begin as. MP4 is every file that begins with a brand ('ftyp') which is no
// picture's, QuickTime's among them; older QuickTime files, which begin with 'moov', 'mdat' or 'wide',
// are none. WebM is Matroska's too.
std::optional<Container> container_of(std::string_view bytes);

// kInvalid where the file ends before its last part does, so that frames would be missing at the
// end. A WebM that was recorded live does not say how long it is, and passes.
Result<void> check_whole(Container container, std::string_view bytes);

// What libavformat takes for an MP4's tables, at most, by what their heads say; of other containers,
// whose tables are lists of their own elements, nothing. kTooLarge where a table has more than
// `entries_max` entries, all together more than kTablesMax times as many, or a list of edits more than
// kEditsMax; kMediaType for a compressed head, which says nothing before it is unpacked.
inline constexpr uint64_t kTablesMax = 8, kEditsMax = 64;
Result<size_t> table_bytes(Container container, std::string_view bytes, int64_t entries_max);

// "the MP4 is damaged: WHAT"; kInvalid.
tl::unexpected<Error> damaged(Container container, std::string_view what);

}  // namespace weir::media
