// Detokenizer: one sequence's tokens to text as they arrive: never half a UTF-8 character, never
// part of a stop string.
//
// Threads: owned by one stream.
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
    std::vector<std::string> stop;  // Stop strings; none empty.
    bool include_stop = false;      // Keep the stop string in the text.
    bool skip_special = true;
  };

  Detokenizer(const Tokenizer& tokenizer, Options options);

  // Adds a token and returns text that is now certain: whole characters that cannot be part of a
  // stop string. The view lives until the next call. Invalid bytes come out as U+FFFD once it is
  // certain that they are invalid.
  std::string_view push(int32_t token);
  // The end: what was held back (an incomplete character as U+FFFD).
  std::string_view finish();

  // A stop string was met; text after it is never returned.
  bool stopped() const { return stopped_; }
  const std::string& stop_string() const { return stop_string_; }  // Which one.

 private:
  const Tokenizer& tokenizer_;
  Options options_;
  std::string pending_;  // Bytes held back: incomplete characters, beginnings of stop strings.
  std::string out_;
  std::string stop_string_;
  bool first_ = true;
  bool stopped_ = false;
};

}  // namespace weir::text
