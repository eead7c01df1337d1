// Any bytes as the JSON of a GGUF file's tokenizer.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  weir::text::check_file(weir::text::kGgufTokenizer, bytes, "");
  return 0;
}
