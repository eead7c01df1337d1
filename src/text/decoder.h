// Decoder: tokenizer.json's `decoder`: tokens back to text, all together as the Hugging Face crate
// does it, or each by itself for streams.
//
// Threads: immutable after parse(); decode() and piece() may be called from any thread at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/regex.h"

namespace weir::text {

class Decoder {
 public:
  // No decoder: tokens with spaces between them.
  static Result<Decoder> parse(std::optional<JsonValue> json);

  std::string decode(std::vector<std::string> tokens) const;

  // Appends the bytes that a token stands for after others. Not always what decode() gives: bytes
  // are not checked to be characters, and whatever looks at the whole text is left out. False if a
  // regular expression took too long.
  bool append_piece(std::string& out, std::string_view token) const;
  // How many spaces decode() takes from the beginning of a text, at most.
  size_t leading_spaces() const;

 private:
  enum class Kind : uint8_t {
    kJoin,  // With spaces; no decoder.
    kByteLevel,
    kByteFallback,  // <0x0A> to bytes.
    kFuse,
    kStrip,  // `content` from the ends of each token.
    kReplace,
    kMetaspace,  // `content` to spaces.
    kWordPiece,  // A space before each token without prefix `content`.
    kBpe,        // Suffix `content` to spaces.
  };
  struct Step {
    Kind kind = Kind::kFuse;
    std::string content = {};
    std::string replacement = {};         // kReplace.
    std::optional<Pattern> pattern = {};  // kReplace.
    size_t left = 0, right = 0;           // kStrip.
    bool prefixed = false;                // kMetaspace: the first token's are dropped.
    bool cleanup = false;                 // kWordPiece.
  };

  Result<void> add(JsonValue json, int depth);
  static void run(const Step& step, std::vector<std::string>& tokens);

  std::vector<Step> steps_;
};

}  // namespace weir::text
