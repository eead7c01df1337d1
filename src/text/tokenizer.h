// Tokenizer: a tokenizer.json, or a vocabulary in an older form, to token ids and back. Byte-level
// BPE, SentencePiece-style BPE (byte fallback, Metaspace), Unigram; normalisers, pre-tokenizers,
// added tokens, decoders as the Hugging Face `tokenizers` crate computes them.
//
// Threads: immutable after load(); encode() and decode() may be called from any thread at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

struct EncodeOptions {
  bool add_special = false;   // Apply the post-processor's template (BOS and the like).
  bool parse_special = true;  // Recognise special added tokens in the text.
};

// What load_file() calls the tokenizer of a GGUF file: its metadata's keys as JSON
// (gguf_tokenizer.h).
inline constexpr std::string_view kGgufTokenizer = "tokenizer.ggml";

class Tokenizer {
 public:
  // The text of a tokenizer.json. The error names the part that is not understood.
  static Result<std::unique_ptr<Tokenizer>> load(std::string_view json);
  // A file by its name: tokenizer.json, tekken.json, tokenizer.model (SentencePiece, or tiktoken's
  // lines), vocab.json (with merges.txt: merged_vocabulary.h), any other with tiktoken's lines.
  // `config` is the text of tokenizer_config.json, empty where there is none; tokenizer.json and
  // tekken.json say all themselves.
  static Result<std::unique_ptr<Tokenizer>> load_file(std::string_view name, std::string_view bytes,
                                                      std::string_view config);
  ~Tokenizer();

  // Appends ids. Any bytes are accepted: invalid UTF-8 is read as U+FFFD.
  void encode(std::string_view text, const EncodeOptions& options, std::vector<int32_t>& ids) const;
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // As the crate's decode(): the decoder applied to all tokens together. Unknown ids are skipped.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // The bytes that `id` stands for in the middle of a text (a byte-level token's raw bytes, a
  // Metaspace token with its space); empty for unknown ids. Concatenated they are the streamed
  // text.
  std::string_view piece(int32_t id) const;
  bool is_special(int32_t id) const;
  // True where decode() strips a leading space of the first token (Metaspace with prefix space).
  bool strips_leading_space() const;
  // How many at most: one or few by Strip, all of the first token's by Metaspace.
  size_t leading_spaces_stripped() const;

  std::optional<int32_t> id(
      std::string_view token) const;  // Exact vocabulary entry or added token.
  int32_t vocab_size() const;         // Largest id + 1, added tokens included.
  // What EncodeOptions::add_special puts before and after a text, in this order.
  std::vector<int32_t> surrounding_ids() const;

 private:
  struct Impl;
  static Result<std::unique_ptr<Tokenizer>> build(std::unique_ptr<Impl> impl, JsonValue rest);
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::text
