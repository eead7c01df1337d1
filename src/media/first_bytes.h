// What the first bytes of a file say that it is, and the sentences that refuse a file for them or
// for its size, whatever medium was expected.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace weir::media {

enum class FileKind : uint8_t { kImage, kSound, kVideo, kOther };

// Whether the bytes begin as a RIFF file of this kind, of four letters.
bool is_riff(std::string_view bytes, std::string_view kind);
// Whether they begin as a file of boxes (MP4, HEIF) of this brand, of four letters.
bool is_boxes(std::string_view bytes, std::string_view brand);

// Of what they begin as; kOther where that is nothing known.
FileKind file_kind(std::string_view bytes);

// kTooLarge for a file of more than `most` bytes.
Result<void> check_file_size(FileKind expected, size_t bytes, size_t most);

// "the image is TIFF; READ": for a file that was expected to be of a kind and is of no format of it
// that is read. Tells many other formats by name, and of the rest how they begin. kMediaType; of an
// empty file kInvalid.
tl::unexpected<Error> refuse_format(FileKind expected, std::string_view bytes,
                                    std::string_view read);

}  // namespace weir::media
