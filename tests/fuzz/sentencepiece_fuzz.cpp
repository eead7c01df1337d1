// Any bytes as a SentencePiece model, read in both ways that its config chooses.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Without a first byte of a piece it would be read as tiktoken's lines.
  if (!bytes.starts_with('\n')) return 0;
  weir::text::check_file("tokenizer.model", bytes, "");
  weir::text::check_file("tokenizer.model", bytes, R"({"legacy":false,"add_eos_token":true})");
  return 0;
}
