// A PNG file: any bytes give a picture within the limits, or an error.
#include "decoder_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::media::check_decoder(weir::media::decode_png, data, size);
  return 0;
}
