// One function a format, for decode_sound(): they give what the file's header says, then its
// samples, to a builder. Errors are the builder's, or kInvalid for a damaged file.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "media/audio/decode_sound.h"
#include "media/audio/sound_builder.h"

namespace weir::media {

Result<void> decode_wav(std::string_view bytes, SoundBuilder& out);
Result<void> decode_flac(std::string_view bytes, SoundBuilder& out);
Result<void> decode_mp3(std::string_view bytes, SoundBuilder& out);
Result<void> decode_vorbis(std::string_view bytes, SoundBuilder& out);
Result<void> decode_opus(std::string_view bytes, SoundBuilder& out);

// Frames that are decoded at once; of eight channels they take 128 KiB.
inline constexpr size_t kBlockFrames = 4096;

// "the FLAC is damaged: WHAT"; kInvalid.
tl::unexpected<Error> damaged(SoundFormat format, std::string_view what);

}  // namespace weir::media
