// The pages of an Ogg file, as far as they are looked at before a decoder sees them: what its
// packets hold, and whether it is all there. Decoders take a file that ends early for a shorter
// one.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "media/audio/decode_sound.h"

namespace weir::media {

// The beginning of the first packet.
std::string_view first_ogg_packet(std::string_view bytes);

// An error if the last page is not there to its end.
Result<void> check_ogg_pages(SoundFormat format, std::string_view bytes);

}  // namespace weir::media
