// An Ogg Opus file: any bytes give a sound within the limits, or an error.
#include "sound_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::media::check_sound(weir::media::SoundFormat::kOpus, data, size);
  return 0;
}
