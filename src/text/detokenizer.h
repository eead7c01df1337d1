// Detokenizer: one sequence's tokens to text as they arrive: never half a UTF-8 character, never
// part of a stop string.
//
// Threads: owned by one stream.
//
// Invariants:
// (1) What push() and finish() returned, concatenated, is a prefix of the whole text; what is held
//     back is an incomplete character (at most three bytes) or the longest end of the text that a
//     stop string begins with, and nothing else.
// (2) The result does not depend on where tokens end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace weir::text {

class Detokenizer {
 public:
  struct Options {
    std::vector<std::string> stop = {};  // Stop strings; none empty.
    bool include_stop = false;           // Keep the stop string in the text.
    bool skip_special = true;
    // Special tokens that are not skipped: sorted, and few.
    std::vector<int32_t> keep_special = {};
    // Take the space from the first token, as Tokenizer::decode() does for some models. False where
    // the text goes on from a prompt and the space belongs between the two.
    bool strip_leading_space = true;
  };

  Detokenizer(const Tokenizer& tokenizer, Options options);

  // Adds a token and returns text that is now certain: whole characters that cannot be part of a
  // stop string. The view lives until the next call. Invalid bytes come out as U+FFFD once it is
  // certain that they are invalid.
  std::string_view push(int32_t token);
  // The end: what was held back (an incomplete character as U+FFFD).
  std::string_view finish();

  // Where the text of the last token begins in the whole text, in bytes and in characters: what is
  // held back counts, and an invalid byte as the U+FFFD that it becomes. A token within a character
  // begins after those bytes of it that came before.
  struct Place {
    int64_t bytes = 0;
    int64_t characters = 0;
  };
  const Place& token_begin() const { return token_begin_; }

  // A stop string was met; text after it is never returned. Of several, the one that ends first
  // counts; of those that end together, the longest.
  bool stopped() const { return stopped_; }
  const std::string& stop_string() const { return stop_string_; }  // Which one.

 private:
  // A stop string and how much of it the text so far ends with (Knuth, Morris, Pratt).
  struct Stop {
    std::string text;
    // borders[i]: length of the longest proper prefix of text[0, i] that is also its end.
    std::vector<uint32_t> borders;
    uint32_t matched = 0;
  };

  std::string_view drop_leading_spaces(std::string_view piece);
  void take_bytes(std::string_view piece);
  void take_text(std::string_view text);
  void count_text(std::string_view text);
  bool advance(char byte);
  std::string_view release();

  // What every token looks at comes first, and close together.
  const Tokenizer& tokenizer_;
  Options options_;
  bool stopped_ = false;
  size_t leading_spaces_ = 0;  // Still to be dropped.
  Place taken_;                // Where the text given to count_text() ends.
  Place token_begin_;
  std::vector<Stop> stops_;
  std::string bytes_;    // An incomplete character.
  std::string pending_;  // Text held back: the beginning of a stop string.
  std::string out_;
  std::string stop_string_;
};

}  // namespace weir::text
