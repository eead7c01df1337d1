// PieceModel: a SentencePiece model as values: pieces with scores and types, and the rules of
// normalisation. The readers: sentencepiece.h, gguf_tokenizer.h.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace weir::text {

// What sentencepiece_model.proto has, with its defaults. Texts are views of the file.
struct PieceModel {
  // The longest known are below 100 bytes; a piece of n characters is cut in n - 1 ways.
  static constexpr size_t kBytesMax = 512;

  enum class Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string_view text;
    float score = 0;
    Type type = Type::kNormal;
    bool sought() const { return type == Type::kNormal || type == Type::kUnused; }
  };

  std::vector<Piece> pieces;  // By id.
  bool bpe = false;
  bool byte_fallback = false;
  std::optional<int32_t> unknown{};  // A unigram model has one.
  std::string_view charsmap{};
  bool dummy_prefix = true;
  bool remove_spaces = true;

  // Control and user-defined pieces become added tokens, as they do where transformers converts
  // such a file; `config` adds to them and says what goes around a text.
  Result<TokenizerParts> parts(const TokenizerConfig& config) const;
};

}  // namespace weir::text
