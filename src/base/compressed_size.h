// How many bytes zlib makes of a text (level 6, with its header): a measure of how much the text
// repeats itself, which is what Whisper's reference judges transcripts by.
//
// Threads: a pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// REQUIRES: the text is shorter than 4 GiB.
size_t compressed_size(std::string_view text);

}  // namespace weir
