// The patterns by which byte-level tokenizers cut texts, by the names that GGUF files have for them
// (tokenizer.ggml.pre).
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace weir::text {

struct GgufPattern {
  std::string pre_tokenizer{};  // JSON, as in tokenizer.json.
  bool ignore_merges = false;
  bool adds_bos = false;  // Where the file does not say.
};

// Empty `pre_tokenizer` if the name is not known.
GgufPattern gguf_pattern(std::string_view pre);
// "default, llama-bpe, ...", for messages.
std::string gguf_pattern_names();

}  // namespace weir::text
