// The containers of sounds, as far as they are looked at before a decoder sees them: whether a file
// is all there, and what it holds. libsndfile takes a WAV file that ends early for a shorter one,
// and reads encodings besides those that are read here.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "media/audio/decode_sound.h"

namespace weir::media {

// Of a RIFF file of kind WAVE. Its samples are integers of 8, 16, 24 or 32 bits, floats of 32 or
// 64, A-law or mu-law, and as many are there as its header says; or it says, as programs do that
// write into a pipe, that it does not know.
Result<void> check_wav(std::string_view bytes);

// The beginning of the first packet of an Ogg file; it says what the packets hold.
std::string_view first_ogg_packet(std::string_view bytes);
// The last page of an Ogg file is there to its end.
Result<void> check_ogg(SoundFormat format, std::string_view bytes);

// "the FLAC is damaged: WHAT"; kInvalid.
tl::unexpected<Error> damaged(SoundFormat format, std::string_view what);

}  // namespace weir::media
